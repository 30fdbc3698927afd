import { expect, test } from 'vitest';
import { OpenApi } from './openapi.ts';

const PULLS = '/repos/{owner}/{repo}/pulls';

test('requests and responses that are not as GitHub describes them are found', () => {
  const api = new OpenApi();
  const query = new URLSearchParams('state=open&per_page=100');
  expect(api.requestProblems('GET', PULLS, query, undefined)).toEqual([]);
  expect(api.requestProblems('GET', PULLS, new URLSearchParams('state=any&limit=5&page=x'), {})).toEqual([
    expect.stringContaining('must be equal to one of the allowed values'),
    'unknown parameter limit',
    expect.stringContaining('must be integer'),
    'it takes no body',
  ]);
  expect(api.requestProblems('POST', PULLS, new URLSearchParams(), { head: 'a', base: 'main', title: 't' })).toEqual(
    [],
  );
  expect(api.requestProblems('POST', PULLS, new URLSearchParams(), { head: 1, base: 'main', text: 't' })).toEqual([
    'unknown field text',
    '/head must be string',
  ]);
  const pull = api.example('pull-request') as Record<string, unknown>;
  const valid = { ...pull, requested_teams: [], body: null };
  expect(api.responseProblems('POST', PULLS, 201, valid)).toEqual([]);
  expect(api.responseProblems('POST', PULLS, 201, { ...valid, merged: undefined, html_url: 5 })).not.toEqual([]);
  const { merged: _merged, ...without } = valid as typeof valid & { merged: boolean };
  expect(api.responseProblems('POST', PULLS, 201, without)).toEqual([" must have required property 'merged'"]);
  expect(api.responseProblems('POST', PULLS, 200, valid)).toEqual(['status 200 is not described']);
  expect(() => api.requestProblems('PUT', PULLS, new URLSearchParams(), {})).toThrow('GitHub has no PUT');
});
