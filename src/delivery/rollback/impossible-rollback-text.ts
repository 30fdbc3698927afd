import { packageKey } from '../selection/select-revisions.ts';
import type { PackageName } from '../status/target-deployment.ts';

/** Packages that a message names: an event has room for 1,024 characters. */
const MAX_NAMED = 10;
const BUT_STAYS = 'unhealthy, but';

type Named = PackageName & { readonly revision: number };

/** Says that packages which are due for a rollback have none, for one cause. */
export function impossibleRollbackText(packages: readonly Named[], because: string): string {
  const names = packages.map(nameOf);
  if (names.length === 1) return `${names[0]} is ${BUT_STAYS} is not rolled back: ${because}`;
  const more = names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : '';
  const named = names.slice(0, MAX_NAMED).join(', ');
  return `${names.length} packages are ${BUT_STAYS} are not rolled back: ${because}: ${named}${more}`;
}

/** Whether such a text is about a package: 'perhaps' if it does not name all of its packages. */
export function isAboutRollbackOf(text: string, name: Named): boolean | 'perhaps' {
  if (text.startsWith(`${nameOf(name)} is ${BUT_STAYS} `)) return true;
  if (!/^\d+ packages are /.test(text)) return false;
  const named = text.slice(text.lastIndexOf(': ') + 2).split(', ');
  if (named.includes(nameOf(name))) return true;
  return /^and \d+ more$/.test(named.at(-1) ?? '') || text.endsWith('…') ? 'perhaps' : false;
}

function nameOf(name: Named): string {
  return `${packageKey(name)} v${name.revision}`;
}
