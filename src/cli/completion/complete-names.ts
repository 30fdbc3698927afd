import { CONDITION_STATUSES } from '../access/condition-status.ts';
import { localFolderOf, placeOf } from '../access/place.ts';
import type { PlaceOptions } from '../output/invocation.ts';
import type { FolderRequest } from './folder-names.ts';

/** More names do not help the user. */
const MAX_NAMES = 1000;
const DEFAULT_NAMESPACE = 'default';
/** Names from repositories go into a shell. */
const SAFE_NAME = /^[A-Za-z0-9][A-Za-z0-9._/-]*$/;
/** Condition types that Sluice sets. */
const OWN_TYPES = /^(?:Rendered$|sluice\.dev\/)/;
/** Options with a value that a place needs, and those that are skipped where arguments are counted. */
const PLACE_VALUES = ['--data', '--kubeconfig', '--context', '--namespace', '-n'] as const;
const SELECTORS: readonly string[] = ['-l', '--selector'];
const OTHER_VALUES = [
  ...['--reason', '--message', '--as', '--as-group', '--signing-key', '--signing-key-secret'],
  ...['--repository', '--lifecycle', '--past', '--wave', ...SELECTORS],
];

/** Beginnings of arguments of `sluice why` that are no revisions. */
const EXPLAINED: Readonly<Record<string, Kind>> = {
  'packagevariant/': 'variants',
  'packagevariantset/': 'variant sets',
  'waveplan/': 'plans',
  'analysisrun/': 'analysis runs',
  'packagepolicy/': 'policies',
  'freeze/': 'freezes',
  'repository/': 'repositories',
  'deliverytarget/': 'targets',
};

type Option = (typeof PLACE_VALUES)[number];
type Kind = FolderRequest['kind'];

/**
 * Names of a kind that begin like `current`, for the completion of a command line. They are read without a server and without opening
 * repositories; only a remote server is requested. May throw: the caller shows no error.
 */
export async function completeNames(
  kind: string,
  current: string,
  line: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<string[]> {
  if (kind === 'explained') return choose(await explainedNames(current, placeOptionsOf(line), environment), current);
  const request =
    kind === 'conditions'
      ? conditionArgument(current, line)
      : { kind: kind as Kind, subject: kind === 'waves' ? planArgument(line) : '' };
  const names =
    'known' in request ? request.known : await lookUp({ ...request, current }, placeOptionsOf(line), environment);
  const offered = kind === 'conditions' ? names.filter((name) => !OWN_TYPES.test(name)) : names;
  return choose(offered, current);
}

function choose(names: readonly string[], current: string): string[] {
  const wanted = [...new Set(names)].filter((name) => name.startsWith(current) && SAFE_NAME.test(name));
  return wanted.sort().slice(0, MAX_NAMES);
}

/** What `sluice why` explains: revisions, and once the name of a kind has begun, `<kind>/<name>`. */
async function explainedNames(
  current: string,
  options: PlaceOptions,
  environment: NodeJS.ProcessEnv,
): Promise<string[]> {
  const begun = Object.entries(EXPLAINED).filter(
    ([prefix]) => current !== '' && (prefix.startsWith(current) || current.startsWith(prefix)),
  );
  const objects = begun.map(async ([prefix, kind]) => {
    const rest = current.slice(prefix.length);
    return (await lookUp({ kind, current: rest, subject: '' }, options, environment)).map((name) => prefix + name);
  });
  const isObject = current.includes('/');
  const revisions = isObject ? [] : await lookUp({ kind: 'revisions', current, subject: '' }, options, environment);
  return [...revisions, ...(await Promise.all(objects)).flat()];
}

/** Which of the arguments of `rpkg condition set|rm` is completed. */
function conditionArgument(
  current: string,
  line: readonly string[],
): { kind: Kind; subject: string } | { known: readonly string[] } {
  const at = line.indexOf('condition') + 1;
  const rest = line.slice(at + 1);
  // Some shells pass the word that is completed too.
  const before = rest.at(-1) === current ? rest.slice(0, -1) : rest;
  const given = argumentsIn(before);
  // A selector takes the place of the name.
  if (before.some((word) => SELECTORS.includes(word))) given.unshift('');
  const [revision, type] = given;
  if (revision === undefined) return { kind: 'revisions', subject: '' };
  if (type === undefined) return { kind: 'condition types', subject: revision };
  return { known: line[at] === 'set' && given.length === 2 ? CONDITION_STATUSES : [] };
}

/** The plan that a `wave` command line names; empty if it names none yet. */
function planArgument(line: readonly string[]): string {
  return argumentsIn(line.slice(line.indexOf('wave') + 2))[0] ?? '';
}

/** Without options and their values. */
function argumentsIn(words: readonly string[]): string[] {
  const taking: readonly string[] = [...PLACE_VALUES, ...OTHER_VALUES];
  return words.filter((word, at) => !word.startsWith('-') && !taking.includes(words[at - 1] ?? ''));
}

async function lookUp(
  { kind, current, subject }: Omit<FolderRequest, 'namespace'>,
  options: PlaceOptions,
  environment: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  // The kubeconfig of a data folder on this machine leads to the same names as the folder.
  const folder = localFolderOf(placeOf(options, environment), environment);
  if (folder === undefined)
    return (await import('./server-names.ts')).serverNames({ kind, current, subject }, options, environment);
  const { namespace = DEFAULT_NAMESPACE } = options;
  return (await import('./folder-names.ts')).folderNames({ kind, current, namespace, subject }, folder);
}

function placeOptionsOf(line: readonly string[]): PlaceOptions {
  const { '--data': data, '--kubeconfig': kubeconfig, '--context': context, ...rest } = optionsOf(line);
  const namespace = rest['--namespace'] ?? rest['-n'];
  return {
    ...(data === undefined ? {} : { data }),
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    ...(context === undefined ? {} : { context }),
    ...(namespace === undefined ? {} : { namespace }),
  };
}

function optionsOf(line: readonly string[]): Partial<Record<Option, string>> {
  const options: Partial<Record<Option, string>> = {};
  for (const [at, word] of line.entries()) {
    for (const option of PLACE_VALUES) {
      const value = word === option ? line[at + 1] : word.startsWith(`${option}=`) ? word.slice(option.length + 1) : '';
      if (value !== undefined && value !== '') options[option] = value;
    }
  }
  return options;
}
