import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { listed } from '../../foundation/text/counted.ts';
import { nearMisses } from '../../foundation/text/near-misses.ts';
import { type Event, eventKind } from '../../resource/kinds/core/event.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import type { Stored } from '../../resource/object/object.ts';
import { printable } from '../output/printable.ts';
import type { Access } from './access.ts';

/** Reasons of the events of a Repository about branches that are gone. */
const REMOVALS: ReadonlySet<string> = new Set(['DraftRemoved', 'ProposedRemoved']);
const NOT_LISTED: ReadonlySet<string> = new Set(['Refused', 'Unsupported', 'InvalidInput', 'NotFound']);
/** Revisions of a package that are named. */
const MAX_NAMED = 5;
/** Maximum number of repositories that are searched for a name without one, since opening each takes time. */
const MAX_LOOKED_INTO = 3;

/** The repository that the name of a revision begins with: names of repositories have no dot. */
export function repositoryOf(revisionName: string): string {
  return revisionName.split('.', 1)[0] ?? '';
}

/** A revision by its full name. NotFound names what may have been meant. */
export async function findRevision(access: Access, name: string): Promise<Stored<PackageRevision>> {
  const { client, namespace } = access;
  if (name.includes('/')) throw await pathError(access, name);
  const repository = repositoryOf(name);
  try {
    const found = await client.find(packageRevisionKind, { namespace, name });
    if (found !== undefined) return found;
  } catch (error) {
    if (!isSluiceError(error, 'NotFound') || (await repositoryNames(access)).includes(repository)) throw error;
  }
  const removal = await removalOf(access, name);
  const more = removal === undefined ? `; ${await hintFor(access, name)}` : `: ${printable(removal)}`;
  throw new SluiceError('NotFound', `package revision "${printable(name)}" not found${more}`);
}

/** What was reported when its branch was removed, if that was lately. */
async function removalOf({ client, namespace }: Access, name: string): Promise<string | undefined> {
  try {
    const fieldSelector = `involvedObject.name=${repositoryOf(name)}`;
    const { items } = await client.list(eventKind, { namespace, fieldSelector });
    const isRemoval = ({ reason = '', message = '' }: Event) =>
      REMOVALS.has(reason) && message.includes(`; to restore ${name}, `);
    return items.findLast(isRemoval)?.message;
  } catch (error) {
    // The caller may not list events, or the server does not serve or select them: there is another hint.
    if (isSluiceError(error) && NOT_LISTED.has(error.code)) return undefined;
    throw error;
  }
}

/** Of the path of a package, as "sluice rpkg tree" prints it: which revisions it has, the last ones first. */
async function pathError(access: Access, path: string): Promise<SluiceError> {
  const [repository = '', ...rest] = path.split('/');
  const isKnown = (await repositoryNames(access)).includes(repository);
  const names = (isKnown ? await revisionsOf(access, repository) : [])
    .filter(({ spec }) => spec.packageName === rest.join('/') && (spec.revision ?? 0) >= 0)
    .sort((a, b) => orderOf(b) - orderOf(a))
    .map(({ metadata }) => metadata.name);
  const hint =
    names.length === 0 ? '"sluice rpkg get" lists what there is' : `its revisions are ${listed(names, MAX_NAMED)}`;
  return new SluiceError(
    'NotFound',
    `"${printable(path)}" is the path of a package, and no name of a package revision; ${hint}`,
  );
}

/** Drafts and proposals have no number yet. */
function orderOf({ spec }: PackageRevision): number {
  return spec.revision || Number.MAX_SAFE_INTEGER;
}

/** Package revisions of one repository. */
export async function revisionsOf(
  { client, namespace }: Access,
  repository: string,
): Promise<Stored<PackageRevision>[]> {
  const fieldSelector = `spec.repository=${repository}`;
  return [...(await client.list(packageRevisionKind, { namespace, fieldSelector })).items];
}

async function hintFor(access: Access, name: string): Promise<string> {
  const near = await nearNames(access, name);
  return near.length === 0 ? '"sluice rpkg get" lists what there is' : `did you mean ${near.join(' or ')}?`;
}

async function nearNames(access: Access, name: string): Promise<string[]> {
  const repository = repositoryOf(name);
  const known = await repositoryNames(access);
  if (!known.includes(repository)) {
    // Users often omit the name of the repository.
    const looked = known.slice(0, MAX_LOOKED_INTO).map((each) => `${each}.${name}`);
    const whole = await existing(access, looked);
    if (whole.length > 0) return whole;
    return nearMisses(repository, known).map((near) => `${near}${name.slice(repository.length)}`);
  }
  const revisions = await revisionsOf(access, repository);
  // Without the name of the repository, which is right: a long one would make every other name similar.
  const start = repository.length + 1;
  const near = nearMisses(
    name.slice(start),
    revisions.map(({ metadata }) => metadata.name.slice(start)),
  );
  return near.map((rest) => `${repository}.${rest}`);
}

/** Those of the names that there are; what cannot be read has none. */
async function existing(access: Access, names: readonly string[]): Promise<string[]> {
  const { client, namespace } = access;
  const found: string[] = [];
  for (const name of names) {
    try {
      if ((await client.find(packageRevisionKind, { namespace, name })) !== undefined) found.push(name);
    } catch (error) {
      if (!isSluiceError(error)) throw error;
    }
  }
  return found;
}

async function repositoryNames({ client, namespace }: Access): Promise<string[]> {
  try {
    return (await client.list(repositoryKind, { namespace })).items.map(({ metadata }) => metadata.name);
  } catch (error) {
    // A caller who may not list repositories gets no suggestions.
    if (isSluiceError(error, 'Refused') || isSluiceError(error, 'Unsupported')) return [];
    throw error;
  }
}
