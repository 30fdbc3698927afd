import { allows } from './allows.ts';
import { BOOTSTRAP_ROLES } from './bootstrap-objects.ts';
import { permission } from './require-allowed.ts';

/** Roles for everything, and those of every user: neither is bound for the sake of one right. */
const NOT_OFFERED = /^(cluster-admin$|system:)/;

/** Names of the roles of every server that have a right, for the next step of a refusal. */
export function rolesWith(verb: string, about: Parameters<typeof permission>[2]): string[] {
  const wanted = permission({ name: '', groups: [] }, verb, about);
  return BOOTSTRAP_ROLES.filter(({ rules }) => allows(rules ?? [], wanted))
    .map(({ metadata }) => metadata.name)
    .filter((name) => !NOT_OFFERED.test(name));
}
