import { expect, test } from 'vitest';
import { ROUTES } from '../../../test/support/github/github-routes.ts';
import { OpenApi } from '../../../test/support/github/openapi.ts';
import type { Method } from '../http/forge-response.ts';
import { GITHUB_CONTENT } from './content-requests.ts';

test('the requests that count are those of which the published description states it', () => {
  const api = new OpenApi();
  const counted = Object.keys(ROUTES).filter((route) => {
    const [method = '', template = ''] = route.split(' ');
    const isLimited = /secondary rate limit/.test(api.descriptionOf(method, template));
    const url = `https://api.github.com${template.replaceAll(/\{\w+\}/g, '7')}`;
    expect([route, GITHUB_CONTENT.counts(method as Method, url)]).toEqual([route, isLimited]);
    return isLimited;
  });
  expect(counted.length).toBeGreaterThan(4);
});
