import type { ServerResponse } from 'node:http';
import type { ApiResponse, StreamedResponse } from '../http/answer.ts';
import type { OpenRequest, OpenRequests } from '../limits/open-requests.ts';
import type { Filter } from './filter.ts';

/** Characters of a response from which it counts to its user until it is sent; a client that reads slowly keeps all of it in memory. */
const MIN_COUNTED_RESPONSE_LENGTH = 16 * 1024;

/**
 * Counts the request to its sender until it ends, and a response that is not small until it is sent. TooManyRequests if the sender has too many.
 */
export function limitOpenRequests(openRequests: OpenRequests): Filter {
  return async (request, next) => {
    request.found.openRequest = openRequests.open(request.sender.name);
    try {
      const answer = await next();
      // A write has happened: its client gets the response.
      countResponse(request.openRequest, answer, request.response, { mayRefuse: request.incoming.method === 'GET' });
      return answer;
    } finally {
      // By then it may count to another user.
      request.openRequest.close();
    }
  };
}

function countResponse(
  openRequest: OpenRequest,
  answer: ApiResponse | StreamedResponse,
  response: ServerResponse,
  options: { readonly mayRefuse: boolean },
): void {
  if ('stream' in answer || response.closed) return;
  const { body } = answer;
  // Parts of a list are created while they are sent.
  const length = typeof body === 'string' || body instanceof Uint8Array ? body.length : 0;
  if (length > MIN_COUNTED_RESPONSE_LENGTH) response.once('close', openRequest.reserveResponse(length, options));
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
