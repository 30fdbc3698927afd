import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { outcomeOf } from '../../../test/support/shop.ts';
import { textResponse } from '../http/answer.ts';
import { OpenRequests } from '../limits/open-requests.ts';
import { ApiRequest } from '../request/api-request.ts';
import { limitOpenRequests } from './limit-open-requests.ts';

const MEBIBYTE = 1024 * 1024;

function requestOf(method: string): ApiRequest {
  const incoming = Object.assign(new IncomingMessage(new Socket()), { method });
  const request = new ApiRequest(incoming, new ServerResponse(incoming), 'id', 0);
  request.found.sender = { name: 'anna', groups: [] };
  return request;
}

test('all but small responses to reads count to their user until they are sent', async () => {
  const filter = limitOpenRequests(
    new OpenRequests({ maxRequestsOfUser: 9, maxBytes: MEBIBYTE, maxBytesOfUser: 5 * MEBIBYTE }),
  );
  const respond = (request: ApiRequest, length: number) =>
    outcomeOf(filter(request, async () => textResponse(200, 'text/plain', 'x'.repeat(length))));
  const requests = ['GET', 'GET', 'POST'].map(requestOf);
  const [slow, other] = requests as [ApiRequest, ApiRequest];
  expect(await respond(slow, 6 * MEBIBYTE)).toBe('succeeded');
  expect(await respond(other, 2 * MEBIBYTE)).toMatch(/^TooManyRequests: .* being sent to the user/);
  expect(await respond(other, 17 * 1024)).toMatch(/^TooManyRequests: .* being sent to the user/);
  expect(await respond(other, 16 * 1024)).toBe('succeeded');
  expect(await respond(requests[2] as ApiRequest, 2 * MEBIBYTE)).toBe('succeeded');
  for (const { response } of requests) response.emit('close');
  expect(await respond(requestOf('GET'), 2 * MEBIBYTE)).toBe('succeeded');
});
