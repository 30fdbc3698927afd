import { execFile } from 'node:child_process';
import { createHmac, randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CliFixture, type CliResult, cliFixture } from '../../src/cli/testing.ts';
import { GIT_ENVIRONMENT, initBare } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { Up } from '../support/up.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
const SECRET = '0123456789abcdef0123456789abcdef';

/** Milliseconds; without a webhook the server would poll the repository later than this. */
const BEFORE_A_POLL = 20_000;

/** Asynchronous, since the server runs in this process. */
const run = promisify(execFile);

let cli: CliFixture;
let server: GitServer;
let up: Up;
let work: string;
let hooks = '';
let registered: CliResult;
beforeAll(async () => {
  cli = await cliFixture();
  initBare(join(cli.folder, 'apps.git'));
  server = await startGitServer({ root: cli.folder });
  work = join(cli.folder, 'work');
  await run('git', ['clone', '--quiet', `${server.url}/apps.git`, work], { env: GIT_ENVIRONMENT });
  await push('main', { 'README.md': 'apps\n' });
  up = new Up(cli.data, '--allow-git-host', '127.0.0.1', '--webhook-listen', '127.0.0.1:0');
  await up.said(/kubectl --kubeconfig/);
  await up.said(/POST \/webhooks\/git/);
  writeFileSync(join(cli.folder, 'secret'), `${SECRET}\n`);
  registered = await cli.run(
    ...['repo', 'reg', `${server.url}/apps.git`, '--webhook-secret-file', join(cli.folder, 'secret')],
  );
  hooks = /http:\/\/127\.0\.0\.1:\d+(?= +POST)/.exec(up.output)?.[0] ?? '';
});
afterAll(async () => {
  up?.child.kill('SIGKILL');
  await server.close();
  await cli[Symbol.asyncDispose]();
});

/** Pushes as a user without Sluice, with git over HTTP. */
async function push(branch: string, files: Readonly<Record<string, string>>, to = 'origin'): Promise<void> {
  const git = (...words: string[]) => run('git', ['-C', work, ...words], { env: GIT_ENVIRONMENT });
  await git('checkout', '-B', branch);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(work, path, '..'), { recursive: true });
    writeFileSync(join(work, path), text);
  }
  await git('add', '.');
  await git('commit', '--quiet', '--message', `change ${branch}`);
  await git('push', '--quiet', to, branch);
}

/** What GitHub would send after a push. */
function send(branch: string, secret = SECRET, repository = 'apps'): Promise<Response> {
  const body = JSON.stringify({ ref: `refs/heads/${branch}`, repository: { full_name: 'team/apps' } });
  const signature = createHmac('sha256', secret).update(body).digest('hex');
  return fetch(`${hooks}/webhooks/git/default/${repository}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-GitHub-Event': 'push',
      'X-GitHub-Delivery': randomUUID(),
      'X-Hub-Signature-256': `sha256=${signature}`,
    },
    body,
  });
}

test('a plain push is in the output of "rpkg get" as soon as the webhook has reported it', async () => {
  expect(registered.stderr).not.toContain('error:');
  expect(registered).toMatchObject({ code: 0, stdout: 'apps created\n' });
  expect(registered.stderr).toMatch(/webhooks go to https:\/\/127\.0\.0\.1:\d+\/webhooks\/git\/default\/apps/);
  expect(await send('main')).toMatchObject({ status: 202 });
  await expect.poll(async () => (await cli.run('repo', 'get', '-o', 'wide')).stdout).toMatch(/ OwnClient +\d+s /);

  // The command is loaded once, as it is for its users.
  await cli.run('rpkg', 'get');
  const times: number[] = [];
  for (const workspace of ['w1', 'w2', 'w3']) {
    await push(`drafts/app/${workspace}`, { 'app/Kptfile': KPTFILE, 'app/x.yaml': `${workspace}\n` });
    const pushed = performance.now();
    expect(await send(`drafts/app/${workspace}`)).toMatchObject({ status: 202 });
    await expect
      .poll(async () => (await cli.run('rpkg', 'get')).stdout, { timeout: BEFORE_A_POLL })
      .toContain(`apps.app.${workspace}`);
    times.push(Math.round(performance.now() - pushed));
  }
  console.log(`from the end of a push until "rpkg get" shows it: ${times.join(', ')} ms`);
});

test('the hook of the documentation does the same for a bare repository', async () => {
  const page = readFileSync(new URL('../../docs/webhooks.md', import.meta.url), 'utf8');
  const [hook = ''] = /#!\/bin\/sh[^`]*/.exec(page) ?? [];
  const file = join(cli.folder, 'apps.git', 'hooks', 'post-receive');
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(
    file,
    hook.replace('/etc/sluice/webhook-secret', join(cli.folder, 'secret')).replace('https://hooks.example.com', hooks),
  );
  chmodSync(file, 0o755);
  const path = join(cli.folder, 'apps.git');
  await push('drafts/app/w4', { 'app/Kptfile': KPTFILE, 'app/x.yaml': 'w4\n' }, path);
  const pushed = performance.now();
  await expect
    .poll(async () => (await cli.run('rpkg', 'get')).stdout, { timeout: BEFORE_A_POLL })
    .toContain('apps.app.w4');
  console.log(`with a hook of the repository: ${Math.round(performance.now() - pushed)} ms`);
});

test('the address for webhooks refuses other requests, and does not reveal which repositories exist', async () => {
  const answers = await Promise.all([
    send('main', 'not the secret, not the secret'),
    send('main', SECRET, 'unknown'),
    fetch(`${hooks}/api/v1/namespaces/default/secrets`),
    fetch(`${hooks}/livez/ping`),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
  const [wrong, unknown] = await Promise.all(answers.slice(0, 2).map((answer) => answer.text()));
  expect(wrong).toBe(unknown);
  expect(up.output).not.toContain(SECRET);
});
