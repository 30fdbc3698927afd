import { isUtf8 } from 'node:buffer';
import { setTimeout as pause } from 'node:timers/promises';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { BINARY_FILES_ANNOTATION } from '../../package/api/resources-object.ts';
import { AFFIRM_ANNOTATION } from '../../package/api/revision-object.ts';
import type { GivenCondition } from '../../package/model/verdict.ts';
import { isSavedUnrendered } from '../../package/plan/render-failure.ts';
import type { Client } from '../../resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/package-revision.ts';
import { packageRevisionResourcesKind } from '../../resource/kinds/package-revision-resources.ts';
import { keyOf, type ObjectKey, type Stored } from '../../resource/object/object.ts';
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
type Conditions = NonNullable<NonNullable<PackageRevision['status']>['conditions']>;

/** Somebody else, such as a controller, may write at the same moment. */
const ATTEMPTS = 5;
const RETRY_INTERVAL = 100;

/** Files and conditions by the API that every server of package revisions has: texts only. */
export class ServerContents implements PackageContents {
  readonly #client: Client;
  readonly #isSluice: boolean;

  constructor(client: Client, isSluice: boolean) {
    this.#client = client;
    this.#isSluice = isSluice;
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

  /** A server takes a condition that stays as it is for one that was only carried along, unless the request affirms it. */
  async give(revision: Stored<PackageRevision>, condition: GivenCondition): Promise<void> {
    const given = (before: Conditions) => {
      const at = before.findIndex(({ type }) => type === condition.type);
      return at === -1 ? [...before, condition] : before.with(at, condition);
    };
    await this.#write(keyOf(revision), given, condition.type);
  }

  async withdraw(revision: Stored<PackageRevision>, type: string): Promise<void> {
    await this.#write(keyOf(revision), (conditions) => conditions.filter((one) => one.type !== type));
  }

  async #write(key: ObjectKey, change: (conditions: Conditions) => Conditions, affirmed?: string): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const object = await this.#client.get(packageRevisionKind, key);
      const conditions = change(object.status?.conditions ?? []);
      const next = { ...object, status: { publishTimestamp: null, ...object.status, conditions } };
      try {
        // Porch has no sub-resource for it and takes conditions along with the rest.
        if (this.#isSluice) await this.#client.updateStatus(packageRevisionKind, affirming(next, affirmed));
        else await this.#client.update(packageRevisionKind, next);
        return;
      } catch (error) {
        const lost = isSluiceError(error, 'Conflict') || isSluiceError(error, 'Busy');
        if (!lost || attempt >= ATTEMPTS) throw error;
        await pause(RETRY_INTERVAL * attempt);
      }
    }
  }

  /** Read after the files: if the revision is at the same version then, its commit is the one that they are from. */
  async #stateOf(resources: Stored<Resources>): Promise<PulledState> {
    const { resourceVersion } = resources.metadata;
    const revision = await this.#client.find(packageRevisionKind, keyOf(resources));
    const same = revision?.metadata.resourceVersion === resourceVersion;
    return { resourceVersion, commit: same ? commitOf(revision) : undefined };
  }
}

function affirming(object: Stored<PackageRevision>, type: string | undefined): Stored<PackageRevision> {
  if (type === undefined) return object;
  const annotations = { ...object.metadata.annotations, [AFFIRM_ANNOTATION]: type };
  return { ...object, metadata: { ...object.metadata, annotations } };
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
