import { personNameProblem } from './people.ts';

/** Annotation of a Repository: the ConfigMap in its namespace that maps accounts of the Git host to users. */
export const HOST_USERS_ANNOTATION = 'sluice.dev/host-users';
/** The key of that ConfigMap. */
export const HOST_USERS_KEY = 'host_users';

const MAX_TEXT_CHARACTERS = 1024 * 1024;

/** The users behind the accounts of a Git host whose push reports count. */
export interface HostUsers {
  /** Name of the person by the name of the user at the host in lower case: names of users at hosts are case-insensitive. */
  readonly persons: ReadonlyMap<string, string>;
  /** Problems of ignored lines, one sentence each. */
  readonly problems: readonly string[];
}

/** Reads lines `<user of the host>=<person>`; lines that begin with `#` are comments. A user that is listed twice is none. */
export function hostUsersOf(text: string): HostUsers {
  if (text.length > MAX_TEXT_CHARACTERS)
    return { persons: new Map(), problems: [`it is too long: it may have ${MAX_TEXT_CHARACTERS} characters`] };
  const persons = new Map<string, string>();
  const seen = new Map<string, number>();
  const problems: string[] = [];
  for (const [index, raw] of text.split('\n').entries()) {
    const content = raw.trim();
    if (content === '' || content.startsWith('#')) continue;
    const line = index + 1;
    const [, login = '', person = ''] = /^([^\s=]+)\s*=\s*(\S.*)$/.exec(content) ?? [];
    const problem = login === '' ? ' is not <user of the host>=<person>' : personNameProblem(person);
    const user = login.toLowerCase();
    const before = seen.get(user);
    if (problem !== undefined) problems.push(`line ${line}${problem}`);
    else if (before !== undefined && persons.get(user) !== person) {
      persons.delete(user);
      problems.push(`line ${line}: ${login} is listed already (line ${before}) as another person, so that it is none`);
    } else {
      seen.set(user, line);
      persons.set(user, person);
    }
  }
  return { persons, problems };
}

/** Returns the user of an account of the host; undefined if it is not listed. */
export function userOfAccount({ persons }: HostUsers, user: string): string | undefined {
  return persons.get(user.toLowerCase());
}
