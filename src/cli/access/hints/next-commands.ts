/**
 * The commands that lead on after a refusal whose text is Porch's, which clients compare and which therefore names none. `name` is the
 * revision of the command line, where it has one.
 */
export function nextCommands(message: string, name: string | undefined): readonly (readonly string[])[] {
  for (const [pattern, follow] of RULES) {
    const match = pattern.exec(message);
    if (match !== null) return follow(match.groups ?? {}, name);
  }
  return [];
}

type Groups = Readonly<Record<string, string>>;
type Rule = readonly [RegExp, (groups: Groups, name: string | undefined) => readonly (readonly string[])[]];

const REVISION = '(?<revision>[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)';

const RULES: readonly Rule[] = [
  [
    /branch \S+ does not exist in (?<address>[^;]+); push a first commit, or set spec\.git\.createBranch/,
    ({ address = '' }) => [['repo', 'reg', address, '--create-branch']],
  ],
  [/^cannot approve package with Draft lifecycle/, (_, name) => publish(name)],
  [/^cannot approve package with DeletionProposed lifecycle/, (_, name) => on(name, 'reject')],
  [/published PackageRevisions must be proposed for deletion/, (_, name) => on(name, 'propose-delete', 'del')],
  [/^cannot propose-delete \S+: it is (?:Draft|Proposed)/, (_, name) => on(name, 'del')],
  [/lifecycle value "(?:Published|DeletionProposed)"; package must be Draft/, (_, name) => copy(name)],
  [/^conditions and gates of \S+ cannot change any more/, (_, name) => copy(name)],
  [/spec\.lifecycle: Invalid value: "Proposed": value can be only updated to Published/, (_, name) => copy(name)],
  [new RegExp(`source revision must be published: ${REVISION} is Draft`), ({ revision }) => publish(revision)],
  [new RegExp(`source revision must be published: ${REVISION} is Proposed`), ({ revision }) => on(revision, 'approve')],
  [
    new RegExp(`must be in a published state, not "Draft"; approve ${REVISION} first`),
    ({ revision }) => publish(revision),
  ],
  [
    new RegExp(`upstream source not found for package revision ${REVISION}: its Kptfile names none`),
    ({ revision }) => copy(revision),
  ],
  [
    /may not be the placeholder package revision (?<repository>[^/\s]+)\//,
    ({ repository = '' }) => [['rpkg', 'get', '--repository', repository, '--lifecycle', 'Published']],
  ],
  [
    new RegExp(`must not be the placeholder package revision ${REVISION}`),
    ({ revision = '' }) => [
      ['rpkg', 'get', '--repository', revision.split('.', 1)[0] ?? '', '--lifecycle', 'Published'],
    ],
  ],
  [
    /package "(?<path>[^"]+)" (?:that )?already exists in repo(?:sitory)? "(?<repository>[^"]+)"/,
    ({ path = '', repository = '' }) => [['rpkg', 'get', '--repository', repository, '--name', path]],
  ],
  [
    /package revision with name (?<path>\S+) in repo (?<repository>\S+) with workspaceName \S+ already exists/,
    ({ path = '', repository = '' }) => [['rpkg', 'get', '--repository', repository, '--name', path]],
  ],
];

function on(name: string | undefined, ...verbs: readonly string[]): string[][] {
  return name === undefined ? [] : verbs.map((verb) => ['rpkg', verb, name]);
}

function publish(name: string | undefined): string[][] {
  return on(name, 'propose', 'approve');
}

/** A copy of a revision whose workspace is a number gets the next one. */
function copy(name: string | undefined): string[][] {
  if (name === undefined) return [];
  const number = /\.v(\d{1,9})$/.exec(name)?.[1];
  return [['rpkg', 'copy', name, '--workspace', number === undefined ? 'NEW-WORKSPACE' : `v${Number(number) + 1}`]];
}
