import { afterAll, beforeAll, expect } from 'vitest';
import { describeForge } from '../../../test/support/forge/forge-conformance.ts';
import { countingBudgets, openGitHub } from '../../../test/support/github/github-host.ts';
import { GitHubServer } from '../../../test/support/github/github-server.ts';

const server = new GitHubServer();
beforeAll(() => server.listen());
afterAll(async () => {
  await server.close();
  expect(server.problems).toEqual([]);
});

// The same as for an App, which the quick suite has.
describeForge('pull requests of GitHub, as a user', {
  open: () => openGitHub(server, 'user', countingBudgets()),
  pageSize: 100,
});
