import type { OpenRequests } from '../limits/open-requests.ts';
import type { Filter } from './filter.ts';

/** Counts the request to its user until it ends. TooManyRequests if the user has too many. */
export function limitOpenRequests(openRequests: OpenRequests): Filter {
  return async (request, next) => {
    const openRequest = openRequests.open(request.user.name);
    request.found.openRequest = openRequest;
    try {
      return await next();
    } finally {
      openRequest.close();
    }
  };
}
