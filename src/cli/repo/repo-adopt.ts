import { gitNetworkOf } from '../../app/repositories/git-network.ts';
import { Session } from '../../app/session/session.ts';
import { signingChoice } from '../../app/trust/signing-choice.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Adoptable, AdoptableRecord } from '../../package/plan/adoption.ts';
import type { PackageRepository } from '../../package/store/package-repository.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object/object.ts';
import { actorOf } from '../access/actor.ts';
import { DEFAULT_LEDGER_NAMESPACE, folderOf, localFolderOf, noCluster, placeOf } from '../access/place.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { toJson, toYaml } from '../output/structured.ts';
import { table } from '../output/table.ts';
import type { AdoptionPlace } from './adoption-place.ts';
import { adoptionWarnings } from './adoption-warnings.ts';

export interface AdoptOptions extends PlaceOptions, ActorOptions {
  readonly output: 'text' | 'json' | 'yaml';
  readonly yes?: boolean;
  readonly only?: string;
  readonly newId?: boolean;
  readonly ledgerNamespace?: string;
}

/**
 * `sluice repo adopt`: prints what would be adopted, and adopts it with `--yes`. It works on a session, not through the API: see
 * README.md.
 */
export function repoAdopt(name: string, options: AdoptOptions, invocation: Invocation): Promise<CommandResult> {
  return inAdoptionPlace(options, invocation, async (place) => {
    const { session } = place;
    const id = `${options.namespace ?? place.namespace}/${name}`;
    if (options.newId === true) {
      if (place.isCluster)
        throw onlyInCluster('give the repository a new id', 'register the copy at one address alone');
      return giveNewId({ id, name }, options, invocation, session);
    }
    const object = await session.repositories.find(id);
    if (object !== undefined) place.expectKnown(object.spec.git?.repo ?? '');
    await session.repositories.open(id);
    const repository = session.store.repository(id);
    const adoptable = await repository.adoptable(options.only);
    const adopted = options.yes === true;
    if (adopted) {
      if (place.isCluster && adoptable.main !== undefined)
        throw onlyInCluster(
          `accept ${adoptable.main.present} as the main branch in place of ${adoptable.main.accepted}`,
          'push the accepted commit to the main branch again, or a merge with it, and repeat the command',
        );
      await place.beforeWrite();
      await repository.adopt(adoptable, session.context());
    }
    print(repository, adoptable, adopted, options, invocation);
    return 0;
  });
}

/** The ledger of a cluster keeps of each repository what the leader has written, which a command beside it cannot replace. */
function onlyInCluster(what: string, next: string): SluiceError {
  return new SluiceError(
    'Unsupported',
    `cannot ${what}: only the leader writes that into the ledger of a cluster; ${next}`,
  );
}

async function giveNewId(
  { id: registration, name }: { readonly id: string; readonly name: string },
  { output, yes }: AdoptOptions,
  { terminal }: Invocation,
  session: Session,
): Promise<CommandResult> {
  if (yes === true) await session.repositories.open(registration, undefined, { newId: true });
  const id = yes === true ? session.store.repository(registration).trust.repository : null;
  if (output !== 'text') {
    terminal.out.write(output === 'json' ? toJson({ repository: name, id }) : toYaml({ repository: name, id }));
    return 0;
  }
  if (id === null)
    terminal.line(`${name} would get a new id, for which none of its statements count; repeat with --yes to confirm`);
  else {
    terminal.line(`${name} has the id ${id}; no statement of the repository that it is a copy of counts in it`);
    terminal.line(`next: "sluice repo adopt ${name}" lists what could be adopted`);
  }
  return 0;
}

function print(
  { repository, trust }: PackageRepository,
  adoptable: Adoptable,
  adopted: boolean,
  { output }: AdoptOptions,
  { terminal }: Invocation,
): void {
  const { tags, records, main } = adoptable;
  if (output !== 'text') {
    const value = { repository, id: trust.repository, adopted, tags, records, main: main ?? null };
    terminal.out.write(output === 'json' ? toJson(value) : toYaml(value));
    return;
  }
  const usable = records.filter(({ revision }) => revision !== undefined);
  if (tags.length === 0 && usable.length === 0 && main === undefined) {
    terminal.line(`nothing to adopt in ${repository}`);
    return;
  }
  if (tags.length > 0) {
    const rows = tags.map(({ ref, oid, reason, message }) => [oid, ref, reason, message].map(printable));
    terminal.out.write(table(['object', 'ref', 'reason', 'why it does not count now'], rows));
  }
  if (records.length > 0) {
    const rows = records.map((record) => [record.oid, record.ref, ...describe(record)].map(printable));
    terminal.out.write(table(['object', 'unsigned record', 'revision', 'migrated'], rows));
  }
  if (main !== undefined) terminal.line(`main branch: ${main.present} in place of ${main.accepted}`);
  for (const warning of adoptionWarnings(tags))
    terminal.note(`${terminal.style('yellow', 'warning:', terminal.err)} ${warning}`);
  for (const { ref, oid, movedFrom } of tags) {
    if (movedFrom === undefined) continue;
    const label = terminal.style('yellow', 'warning:', terminal.err);
    const text = `${ref} was moved away from the publication at ${movedFrom}, which was approved; adopting ${oid} in its place replaces what was approved`;
    terminal.note(`${label} ${printable(text)}`);
  }
  const what = `${count(tags.length, 'tag')}, ${count(usable.length, 'record')}${main === undefined ? '' : ', the main branch'}`;
  terminal.line(adopted ? `adopted: ${what}` : `would adopt: ${what}; nothing was changed, --yes does it`);
}

function describe({ revision, metadata }: AdoptableRecord): [string, string] {
  if (revision === undefined) return ['-', 'nothing: it belongs to no revision here, and stays'];
  const { labels, annotations, ownerReferences, finalizers } = metadata;
  const parts = [
    ...Object.entries(labels ?? {}).map(([key, value]) => `label ${key}=${value}`),
    ...Object.entries(annotations ?? {}).map(([key, value]) => `annotation ${key}=${value}`),
    ...(ownerReferences ?? []).map(({ kind, name }) => `owner ${kind}/${name}`),
    ...(finalizers ?? []).map((finalizer) => `finalizer ${finalizer}`),
  ];
  return [revision, parts.length === 0 ? 'no metadata' : parts.join(', ')];
}

function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? '' : 's'}`;
}

async function inAdoptionPlace<Result>(
  options: AdoptOptions,
  invocation: Invocation,
  run: (place: AdoptionPlace) => Promise<Result>,
): Promise<Result> {
  const { terminal, environment } = invocation;
  const place = placeOf(options, environment);
  const folder = localFolderOf(place, environment);
  const onNote = (note: string) =>
    terminal.note(`${terminal.style('yellow', 'note:', terminal.err)} ${printable(note)}`);
  const signing = signingChoice(environment);
  const network = gitNetworkOf({}, environment);
  const actor = actorOf(options, environment);
  const isVerbose = options.verbose === true || environment.SLUICE_DEBUG === '1';
  const { ledgerNamespace } = options;
  if (place.kind === 'server' && folder === undefined) {
    const { inClusterAdoption } = await import('./in-cluster-adoption.ts');
    const installation = ledgerNamespace ?? DEFAULT_LEDGER_NAMESPACE;
    if (isVerbose) terminal.note(`using the trust ledger in namespace ${printable(installation)} of the cluster`);
    const common = { actor, network, onNote, environment, write: options.yes === true };
    return inClusterAdoption({ ...common, place, choice: signing, ledgerNamespace: installation }, run);
  }
  if (ledgerNamespace !== undefined) throw noCluster();
  const session = await Session.open({
    folder: folder ?? folderOf(options, environment),
    actor,
    signing,
    network,
    onNote,
  });
  try {
    if (isVerbose) terminal.note(`using the data folder ${printable(session.folder.path)}`);
    const nothing = { expectKnown: () => undefined, beforeWrite: async () => undefined };
    return await run({ session, namespace: DEFAULT_NAMESPACE, isCluster: false, ...nothing });
  } finally {
    await session.close();
  }
}
