/** Names that Sluice uses itself: `push` is an unknown pusher, controllers and resolvers are not users, and `says: ` marks claims. */
const RESERVED = /^(?:push$|(?:controller|resolver|group):|says: )/;
/** Characters that a reader does not see, or that change the order of what they see. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]/u;

/** Returns why a name cannot be that of a user, as a clause; undefined if it can. Histories and approvals show names. */
export function userNameProblem(name: string): string | undefined {
  if (RESERVED.test(name)) return 'the name is reserved';
  return INVISIBLE.test(name) ? 'it contains invisible characters' : undefined;
}
