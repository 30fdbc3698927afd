import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startGitServer } from '../../../test/support/git/git-server.ts';
import { cliFixture } from '../testing.ts';

test('credentials that a host refuses are reported with their Secret and options, and never printed', async () => {
  await using cli = await cliFixture();
  cli.bare('edge.git');
  const server = await startGitServer({ root: cli.folder, auth: { username: 'ci', password: 'right' } });
  try {
    const url = `${server.url}/edge.git`;
    expect(await cli.run('repo', 'reg', url)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        / requires credentials: .* \(HTTP 401\); give --repo-basic-username and --repo-basic-password-file; nothing was registered/,
      ),
    });
    const file = join(cli.folder, 'token');
    await writeFile(file, 'wr0ng-t0ken\n');
    const options = ['--repo-basic-username', 'ci', '--repo-basic-password-file', file];
    const refused = await cli.run('repo', 'reg', url, ...options);
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        / rejected the credentials of Secret default\/edge-auth: .* the values of --repo-basic-username and --repo-basic-password-file: check /,
      ),
    });
    await cli.run('repo', 'reg', url, ...options, '--no-wait');
    const synced = await cli.run('repo', 'sync', 'edge');
    expect(synced.stderr).toContain('rejected the credentials of Secret default/edge-auth: renew them there');
    const why = await cli.run('why', 'repo/edge');
    expect(why.stdout).toContain('rejected the credentials of Secret default/edge-auth');
    for (const { stdout, stderr } of [refused, synced, why]) expect(stdout + stderr).not.toMatch(/wr0ng/);

    server.behaviour.auth = undefined;
    server.behaviour.refuse = 407;
    const proxy = await cli.run('repo', 'reg', `${server.url}/other.git`);
    expect(proxy.stderr).toContain('is behind a proxy that requires credentials');
    expect(proxy.stderr).not.toContain('--repo-basic');
  } finally {
    await server.close();
  }
});
