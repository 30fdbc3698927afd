import type { Authorizer } from '../authorization/authorizer.ts';
import { requireAllowed } from '../authorization/require-allowed.ts';
import type { Filter } from './filter.ts';

/**
 * Refuses requests that the user may not make. Kinds that are not served are refused in the same way, so that a refusal
 * reveals nothing.
 */
export function authorize(authorizer: Authorizer): Filter {
  return async ({ info, user, aborted }, next) => {
    await requireAllowed(authorizer, { ...info, user }, aborted.signal);
    return next();
  };
}
