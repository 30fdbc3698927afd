import type { Authorizer } from '../authorization/authorizer.ts';
import { requireAllowed } from '../authorization/require-allowed.ts';
import type { Filter } from './filter.ts';

/** Refuses what the user may not do. Kinds that are not served are refused alike, so that a refusal reveals nothing. */
export function authorize(authorizer: Authorizer): Filter {
  return async ({ info, user, aborted }, next) => {
    await requireAllowed(authorizer, { ...info, user }, aborted.signal);
    return next();
  };
}
