import { isUtf8 } from 'node:buffer';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { historySchema } from '../../package/model/revision/revision-readings.ts';
import { isSavedUnrendered } from '../../package/plan/edit/render-failure.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { packageRevisionResourcesKind } from '../../resource/kinds/porch/package-revision-resources.ts';
import { keyOf, type ObjectKey, type Stored } from '../../resource/object/object.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import type { ObjectOf } from '../../resource/schema/kind.ts';
import type { Access } from './access.ts';

type Resources = ObjectOf<typeof packageRevisionResourcesKind>;
type RenderStatus = NonNullable<Resources['status']>['renderStatus'];

/**
 * Identifies the revision and version of a pulled folder. The name and format are those of kpt; it is not a file of the package.
 */
export const METADATA_FILE = '.KptRevisionMetadata';

/** The state of a package that a folder was pulled from. */
export interface PulledState {
  /** As the server gave it; in a data folder the commit. */
  readonly resourceVersion: string;
  /** Undefined where it is not known. */
  readonly commit: string | undefined;
  /** True if binary files are among the pulled ones: then one that is missing in the folder was removed there. */
  readonly hasBinary: boolean;
}

export interface PulledFiles {
  readonly files: ReadonlyMap<string, Buffer>;
  /** Parts of the package that are not among the files, with the reason. */
  readonly omitted: readonly string[];
  readonly state: PulledState;
}

/** The result of a push. */
export interface ReplaceResult {
  readonly state: PulledState;
  /** Additional results, as lines. */
  readonly notes: readonly string[];
  /** The files are saved, and could not be rendered. */
  readonly failure?: SluiceError;
}

type Api = Pick<Access, 'client' | 'isSluice' | 'server'>;

/** All files of a package revision. */
export async function readFiles(api: Api, revision: Stored<PackageRevision>): Promise<PulledFiles> {
  const resources = await api.client.get(packageRevisionResourcesKind, keyOf(revision));
  const { texts, binary } = sorted(resources);
  const files = new Map(
    [...texts].map(([path, text]): [string, Buffer] => [path, Buffer.from(text)]).concat([...binary]),
  );
  return {
    files: new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1))),
    omitted: resources.status?.skippedFiles ?? [],
    state: await stateOf(api, resources),
  };
}

/**
 * Makes the files of a draft those given, if it is still in the state that they were made from; Conflict otherwise. Undefined if nothing
 * differs. Throws RenderFailed, with nothing saved, for files that cannot be rendered, unless an annotation allows that.
 */
export async function pushFiles(
  api: Api,
  revision: Stored<PackageRevision>,
  files: ReadonlyMap<string, Buffer>,
  from: PulledState,
  reason: string | undefined,
): Promise<ReplaceResult | undefined> {
  const { client } = api;
  const { name } = revision.metadata;
  const key = keyOf(revision);
  if (from.commit === undefined && api.server === undefined) {
    throw new SluiceError(
      'InvalidInput',
      `the folder was pulled from a server that does not report commits; push it there, or pull ${name} from here`,
    );
  }
  const current = await client.get(packageRevisionResourcesKind, key);
  const state = await stateOf(api, current);
  // Commits say more: labels and the like change the version, and not what was pulled.
  const compared = from.commit !== undefined && state.commit !== undefined ? 'commit' : 'resourceVersion';
  const [before, now] = [String(from[compared]), String(state[compared])];
  if (before !== now) throw movedSince(name, { from: before, to: now, by: await lastAuthor(api, key) });
  const spec = wantedSpec(api, current, files, from);
  if (sameValue(spec, current.spec)) return undefined;
  const after = await client
    .update(packageRevisionResourcesKind, { ...current, spec }, reason === undefined ? {} : { reason })
    .catch((error: unknown) => {
      if (isSluiceError(error, 'RenderFailed') && isSavedUnrendered(error)) return error;
      throw isSluiceError(error, 'Conflict') ? movedSince(name, { from: before, to: 'a later one' }) : error;
    });
  if (after instanceof SluiceError) {
    const saved = await client.get(packageRevisionResourcesKind, key);
    return { state: await stateOf(api, saved), notes: [], failure: after };
  }
  return { state: await stateOf(api, after), notes: renderNotes(after.status?.renderStatus) };
}

/** The commit that a revision is at; undefined if the server does not report it. */
export function commitOf({ status }: PackageRevision): string | undefined {
  return status?.selfLock?.git?.commit;
}

/** Read after the files: if the revision is at the same version then, its commit is the one that they are from. */
async function stateOf({ client, server }: Api, resources: Stored<Resources>): Promise<PulledState> {
  const { resourceVersion } = resources.metadata;
  const revision = await client.find(packageRevisionKind, keyOf(resources));
  const commit = revision?.metadata.resourceVersion === resourceVersion ? commitOf(revision) : undefined;
  return {
    resourceVersion: server === undefined ? (commit ?? resourceVersion) : resourceVersion,
    commit,
    hasBinary: resources.spec.binaryResources !== undefined,
  };
}

/** The files of the server as a folder has them. */
function sorted({ spec }: Resources): { texts: Map<string, string>; binary: Map<string, Buffer> } {
  const texts = new Map(Object.entries(spec.resources ?? {}));
  const encoded = Object.entries(spec.binaryResources ?? {});
  texts.delete(METADATA_FILE);
  return { texts, binary: new Map(encoded.map(([path, text]) => [path, Buffer.from(text, 'base64')])) };
}

/** What the server is to have: the files of the folder, and of its own those that the folder cannot have had. */
function wantedSpec(
  { isSluice }: Api,
  { metadata, spec }: Stored<Resources>,
  files: ReadonlyMap<string, Buffer>,
  { hasBinary }: PulledState,
): Resources['spec'] {
  const texts = new Map<string, string>();
  // A folder that porchctl pulled has no binary files.
  const binary = new Map(hasBinary ? [] : Object.entries(spec.binaryResources ?? {}));
  const own = spec.resources?.[METADATA_FILE];
  if (own !== undefined) texts.set(METADATA_FILE, own);
  const refused = (problem: string) =>
    new SluiceError('InvalidInput', `${problem}; bring it into the draft branch of ${metadata.name} with git`);
  for (const [path, data] of files) {
    if (path === '__proto__') throw refused(`${path} is a name that the API cannot carry`);
    if (isUtf8(data)) {
      texts.set(path, data.toString('utf8'));
      binary.delete(path);
    } else if (isSluice) binary.set(path, data.toString('base64'));
    else throw refused(`${path} is a binary file, and a server takes texts only`);
  }
  const hasAny = spec.binaryResources !== undefined || binary.size > 0;
  const resources = Object.fromEntries(texts);
  return { ...spec, resources, ...(hasAny ? { binaryResources: Object.fromEntries(binary) } : {}) };
}

/** The error for a push of a folder that is behind the server. */
function movedSince(
  name: string,
  { from, to, by }: { readonly from: string; readonly to: string; readonly by?: string | undefined },
): SluiceError {
  const last = by === undefined ? '' : `, last by ${by}`;
  return new SluiceError(
    'Conflict',
    `${name} has moved since it was pulled (from ${from} to ${to}${last}); pull it into another folder and bring your changes there`,
  );
}

/** Who wrote last; undefined where the server does not say, or not to this user. */
async function lastAuthor({ client, isSluice }: Api, key: ObjectKey): Promise<string | undefined> {
  if (!isSluice) return undefined;
  try {
    const history = await client.subResource('history').get(packageRevisionKind, key, { limit: '1' });
    return historySchema.parse(history).entries[0]?.by;
  } catch (error) {
    if (isSluiceError(error, 'Refused')) return undefined;
    throw error;
  }
}

/** What a server says of the functions that it ran, in the lines of porchctl. */
function renderNotes(status: RenderStatus): string[] {
  const lines = (status?.result?.items ?? []).flatMap(
    ({ image = '', exec = '', exitCode = 0, stderr = '', results }) => {
      const name = JSON.stringify(image || exec);
      const found = (results ?? []).map(({ severity = '', message = '' }) => `  [${severity}] ${message}`);
      const failure = exitCode === 0 || stderr === '' ? [] : [`  Stderr: ${JSON.stringify(stderr)}`];
      return [`[RUNNING] ${name}`, `[${exitCode === 0 ? 'PASS' : 'FAIL'}] ${name}`, ...found, ...failure];
    },
  );
  return status?.error === undefined || status.error === '' ? lines : [...lines, status.error];
}
