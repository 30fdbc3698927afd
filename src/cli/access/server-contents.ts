import { isUtf8 } from 'node:buffer';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { BINARY_FILES_ANNOTATION } from '../../package/api/objects/resources-object.ts';
import { isSavedUnrendered } from '../../package/plan/edit/render-failure.ts';
import type { Client } from '../../resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { packageRevisionResourcesKind } from '../../resource/kinds/porch/package-revision-resources.ts';
import { keyOf, type Stored } from '../../resource/object/object.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import type { ObjectOf } from '../../resource/schema/kind.ts';
import { movedSince } from './moved-since.ts';
import {
  commitOf,
  METADATA_FILE,
  type PackageContents,
  type PackageFiles,
  type PulledState,
} from './package-contents.ts';
import { renderNotes } from './render-notes.ts';

type Resources = ObjectOf<typeof packageRevisionResourcesKind>;

/** Files by the API that every server of package revisions has: texts only. */
export class ServerContents implements PackageContents {
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  async read(revision: Stored<PackageRevision>): Promise<PackageFiles> {
    const resources = await this.#client.get(packageRevisionResourcesKind, keyOf(revision));
    const binary = resources.metadata.annotations?.[BINARY_FILES_ANNOTATION];
    return {
      files: new Map([...textsOf(resources)].map(([path, text]) => [path, Buffer.from(text)])),
      leftOut: binary === undefined ? [] : [`${binary} (binary; a server sends texts only)`],
      state: await this.#stateOf(resources),
    };
  }

  async replace(
    revision: Stored<PackageRevision>,
    files: ReadonlyMap<string, Buffer>,
    from: PulledState,
    reason: string | undefined,
  ) {
    const { name } = revision.metadata;
    const current = await this.#client.get(packageRevisionResourcesKind, keyOf(revision));
    const state = await this.#stateOf(current);
    // Commits say more: labels and the like change the version, and not what was pulled.
    const compared = from.commit !== undefined && state.commit !== undefined ? 'commit' : 'resourceVersion';
    const [before, now] = [String(from[compared]), String(state[compared])];
    if (before !== now) throw movedSince(name, { from: before, to: now });
    const texts = localTexts(name, files, current);
    if (sameValue(Object.fromEntries(texts), Object.fromEntries(textsOf(current)))) return undefined;
    const own = current.spec.resources?.[METADATA_FILE];
    if (own !== undefined) texts.set(METADATA_FILE, own);
    const spec = { ...current.spec, resources: Object.fromEntries(texts) };
    const after = await this.#client
      .update(packageRevisionResourcesKind, { ...current, spec }, reason === undefined ? {} : { reason })
      .catch((error: unknown) => {
        if (isSluiceError(error, 'RenderFailed') && isSavedUnrendered(error)) return error;
        throw isSluiceError(error, 'Conflict') ? movedSince(name, { from: before, to: 'a later one' }) : error;
      });
    if (after instanceof SluiceError) {
      const saved = await this.#client.get(packageRevisionResourcesKind, keyOf(revision));
      return { state: await this.#stateOf(saved), notes: [], failure: after };
    }
    return { state: await this.#stateOf(after), notes: renderNotes(after.status?.renderStatus) };
  }

  /** Read after the files: if the revision is at the same version then, its commit is the one that they are from. */
  async #stateOf(resources: Stored<Resources>): Promise<PulledState> {
    const { resourceVersion } = resources.metadata;
    const revision = await this.#client.find(packageRevisionKind, keyOf(resources));
    const same = revision?.metadata.resourceVersion === resourceVersion;
    return { resourceVersion, commit: same ? commitOf(revision) : undefined };
  }
}

function textsOf({ spec }: Resources): Map<string, string> {
  const texts = new Map(Object.entries(spec.resources ?? {}));
  texts.delete(METADATA_FILE);
  return texts;
}

/** Binary files that the server has and keeps are passed over; others it cannot take. */
function localTexts(
  name: string,
  files: ReadonlyMap<string, Buffer>,
  { metadata }: Stored<Resources>,
): Map<string, string> {
  const kept = new Set(metadata.annotations?.[BINARY_FILES_ANNOTATION]?.split(', '));
  const texts = new Map<string, string>();
  for (const [path, data] of files) {
    if (isUtf8(data)) texts.set(path, data.toString('utf8'));
    else if (!kept.has(path))
      throw new SluiceError(
        'InvalidInput',
        `${path} is a binary file, and a server takes texts only; bring it into the draft branch of ${name} with git`,
      );
  }
  return texts;
}
