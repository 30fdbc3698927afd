import type { RenderStatus } from '../../../kptfile-schema/index.ts';
import type { Session } from '../../app/session/session.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { renderStatusOf } from '../../package/api/objects/render-status.ts';
import { authorOf } from '../../package/model/revision/attribution.ts';
import { savedUnrendered } from '../../package/plan/edit/render-failure.ts';
import type { PackageRevision } from '../../resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type Stored } from '../../resource/object/object.ts';
import { movedSince } from './moved-since.ts';
import { METADATA_FILE, type PackageContents, type PackageFiles, type PulledState } from './package-contents.ts';
import { renderNotes } from './render-notes.ts';

/** Files of packages in a session: binary files and all. */
export class FolderContents implements PackageContents {
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
  }

  async read(object: Stored<PackageRevision>): Promise<PackageFiles> {
    const { store } = this.#session;
    const id = keyText(keyOf(object));
    const { files: all, skipped } = await store.content(id);
    const files = new Map(all);
    files.delete(METADATA_FILE);
    return { files, leftOut: skipped, state: stateAt(store.get(id).commit) };
  }

  async replace(
    object: Stored<PackageRevision>,
    files: ReadonlyMap<string, Buffer>,
    { commit: pulled }: PulledState,
    reason: string | undefined,
  ) {
    const { store } = this.#session;
    const { name } = object.metadata;
    const id = keyText(keyOf(object));
    if (pulled === undefined) {
      throw new SluiceError(
        'InvalidInput',
        `the folder was pulled from a server that does not report commits; push it there, or pull ${name} from here`,
      );
    }
    const row = store.get(id);
    if (row.commit !== pulled) throw movedSince(name, { from: pulled, to: row.commit, by: authorOf(row) });
    const { files: before } = await store.content(id);
    const edits = new Map<string, Uint8Array | null>(files);
    for (const path of before.keys()) if (!edits.has(path) && path !== METADATA_FILE) edits.set(path, null);
    const context = this.#session.context(reason);
    let rendered: RenderStatus | undefined;
    const onRendered = (status: RenderStatus) => {
      rendered = status;
    };
    const after = await store.change(
      id,
      { files: edits, expectedCommit: pulled, onRendered, mustRender: true },
      context,
    );
    const notes = renderNotes(renderStatusOf(rendered ?? after.kptfile?.status?.renderStatus));
    if (after.commit === pulled) return undefined;
    const failure = rendered?.errorSummary === undefined ? {} : { failure: savedUnrendered(rendered.errorSummary) };
    return { state: stateAt(after.commit), notes, ...failure };
  }
}

function stateAt(commit: string): PulledState {
  return { resourceVersion: commit, commit };
}
