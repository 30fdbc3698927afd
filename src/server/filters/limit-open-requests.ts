import type { OpenRequests } from '../limits/open-requests.ts';
import type { Filter } from './filter.ts';

/** Counts the request to its sender until it ends. TooManyRequests if the sender has too many. */
export function limitOpenRequests(openRequests: OpenRequests): Filter {
  return async (request, next) => {
    request.found.openRequest = openRequests.open(request.sender.name);
    try {
      return await next();
    } finally {
      // By then it may count to another user.
      request.openRequest.close();
    }
  };
}

/** Counts a request to the user that its sender impersonates, and no longer to the sender. TooManyRequests if that user has too many. */
export function countToUser(openRequests: OpenRequests): Filter {
  return async (request, next) => {
    const { sender, user, openRequest } = request;
    if (user.name !== sender.name) {
      request.found.openRequest = openRequests.open(user.name);
      openRequest.close();
    }
    return next();
  };
}
