import type { Authorizer } from '../authorization/authorizer.ts';
import { effectiveUser } from '../authorization/impersonation.ts';
import type { Filter } from './filter.ts';

/** Replaces the sender by the user that `Impersonate-…` headers name, if the sender may impersonate each part of it. */
export function impersonate(authorizer: Authorizer): Filter {
  return async (request, next) => {
    const { incoming, sender, aborted } = request;
    request.found.user = await effectiveUser(incoming, sender, authorizer, aborted.signal);
    return next();
  };
}
