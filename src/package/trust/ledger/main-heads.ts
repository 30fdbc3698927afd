/** Accepted heads of a repository by main branch: the same repository can be registered with several. */
export type MainHeads = Readonly<Record<string, string>>;

/** The branch of a head that an earlier version stored without one. It applies until the head of any branch is stored. */
export const UNNAMED_BRANCH = '';

export function headOf(heads: MainHeads, branch: string): string | undefined {
  for (const name of [branch, UNNAMED_BRANCH]) if (Object.hasOwn(heads, name)) return heads[name];
  return undefined;
}

export function withHead(heads: MainHeads, branch: string, head: string): MainHeads {
  const { [UNNAMED_BRANCH]: _unnamed, ...named } = heads;
  return { ...named, [branch]: head };
}

/** The heads of all repositories in one table, as a revocation keeps them. Neither ids nor branches of an entry have spaces. */
export function headsOfAll(
  repositories: Iterable<{ readonly id: string; readonly mainHeads: MainHeads }>,
): Record<string, string> {
  const all: [string, string][] = [];
  for (const { id, mainHeads } of repositories) {
    for (const [branch, head] of Object.entries(mainHeads)) all.push([keyOf(id, branch), head]);
  }
  return Object.fromEntries(all);
}

/** The head of one branch in the table of a revocation. */
export function headAmong(all: Readonly<Record<string, string>>, id: string, branch: string): string | undefined {
  for (const key of [keyOf(id, branch), keyOf(id, UNNAMED_BRANCH)]) if (Object.hasOwn(all, key)) return all[key];
  return undefined;
}

/** True if the table of a revocation has the repository, with any branch. */
export function knowsRepository(all: Readonly<Record<string, string>>, id: string): boolean {
  return Object.keys(all).some((key) => key === id || key.startsWith(`${id} `));
}

function keyOf(id: string, branch: string): string {
  return branch === UNNAMED_BRANCH ? id : `${id} ${branch}`;
}
