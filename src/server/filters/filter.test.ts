import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { jsonResponse } from '../http/answer.ts';
import { ApiRequest } from '../request/api-request.ts';
import { composeFilters, type Filter } from './filter.ts';

const request = () => new ApiRequest({} as IncomingMessage, {} as ServerResponse, 'id', 0);

test('filters run from the first to the last, and return in the opposite order', async () => {
  const steps: string[] = [];
  const step = (name: string): Filter => {
    return async (_request, next) => {
      steps.push(`${name} begins`);
      const response = await next();
      steps.push(`${name} ends`);
      return response;
    };
  };
  const respond = composeFilters([step('a'), step('b')], async () => {
    steps.push('handler');
    return jsonResponse(200, {});
  });
  expect(await respond(request())).toMatchObject({ status: 200 });
  expect(steps).toEqual(['a begins', 'b begins', 'handler', 'b ends', 'a ends']);
});

test('later filters do not get a request that an earlier one rejects', async () => {
  const refuse: Filter = async () => Promise.reject(new Error('refused'));
  const respond = composeFilters([refuse], () => expect.unreachable());
  await expect(respond(request())).rejects.toThrow('refused');
});

test('what no filter has set yet cannot be read', () => {
  expect(() => request().user).toThrow('the user of the request is read before the filter that sets it');
});
