import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { initRepository } from '../../src/git/open-repository.ts';
import { issueCertificate } from '../../src/server/certificates/issue-certificate.ts';
import { sluice } from '../support/cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { commitFiles } from '../support/scratch-repository.ts';

const DAY = 86_400_000;

let folder: string;
let git: GitServer;
let https: ReturnType<typeof createServer>;
let port: number;
let authorities: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-operator-'));
  const repository = await initRepository(join(folder, 'packages.git'));
  await commitFiles(
    repository,
    { 'web/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n' },
    0,
  );
  await repository.close();
  git = await startGitServer({ root: folder });
  const lifetime = { notBefore: Date.now() - DAY, notAfter: Date.now() + 30 * DAY };
  const ca = await issueCertificate({ commonName: 'corporate', usage: 'authority', names: [], ...lifetime });
  const names = ['localhost', hostname()];
  const server = await issueCertificate({ commonName: 'git', usage: 'server', names, ...lifetime }, ca);
  authorities = join(folder, 'ca.pem');
  await writeFile(authorities, ca.certificate);
  https = createServer({ key: server.key, cert: server.certificate }, (incoming, answer) => {
    const { method, headers, url } = incoming;
    incoming.pipe(
      request(`${git.url}${url}`, { method, headers }, (reply) => {
        answer.writeHead(reply.statusCode ?? 0, reply.headers);
        reply.pipe(answer);
      }),
    );
  });
  await new Promise<void>((resolve) => https.listen(0, '0.0.0.0', resolve));
  port = (https.address() as AddressInfo).port;
});
afterAll(async () => {
  https.closeAllConnections();
  https.close();
  await git.close();
  await rm(folder, { recursive: true, force: true });
});

let count = 0;

/** A first look at a repository by the real program, in a new data folder. */
async function up(repo: string, words: readonly string[], environment: Record<string, string> = {}) {
  const config = join(folder, `config-${count}.yaml`);
  await writeFile(
    config,
    `apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: {name: packages}\nspec: {git: {repo: "${repo}"}}\n`,
  );
  const data = join(folder, `data-${count++}`);
  const { code, stdout, stderr } = await sluice(['up', '--data', data, '--config', config, '--until-idle', ...words], {
    environment,
  });
  return { code, output: stdout + stderr };
}

test('a host whose name leads to a local address is refused by the program, with the option that permits it', async () => {
  const before = git.requests.length;
  // Whatever its text says, the name of this machine leads to it.
  for (const host of [hostname(), 'localhost']) {
    const { code, output } = await up(`https://${host}:${port}/packages.git`, ['--git-ca', authorities]);
    expect(code).toBe(1);
    expect(output).toContain(`--allow-git-host ${host.toLowerCase()}:${port}`);
  }
  expect(git.requests).toHaveLength(before);
});

test.each([
  ['--git-ca', (ca: string) => [['--git-ca', ca], {}] as const],
  ['SLUICE_GIT_CA', (ca: string) => [[], { SLUICE_GIT_CA: ca }] as const],
  ['NODE_EXTRA_CA_CERTS', (ca: string) => [[], { NODE_EXTRA_CA_CERTS: ca }] as const],
])('an authority by %s is trusted from the first fetch on', async (_name, say) => {
  const [words, environment] = say(authorities);
  const allowed = ['--allow-git-host', `localhost:${port}`];
  const url = `https://localhost:${port}/packages.git`;
  const before = git.requests.length;
  expect(await up(url, [...words, ...allowed], environment)).toMatchObject({ code: 0 });
  expect(git.requests.slice(before).map(({ status }) => status)).not.toContain(undefined);
  expect(git.requests.length).toBeGreaterThan(before);
});

test('without that authority the repository is not read', async () => {
  const { code, output } = await up(`https://localhost:${port}/packages.git`, ['--allow-git-host', 'localhost']);
  expect(code).toBe(1);
  expect(output).toMatch(/authority that is not trusted/);
});

test('plain http needs the permission, by the option or by the environment', async () => {
  const url = `${git.url}/packages.git`.replace('127.0.0.1', 'localhost');
  const { host } = new URL(url);
  const refused = await up(url, []);
  expect(refused).toMatchObject({ code: 1, output: expect.stringContaining(`--allow-git-host ${host}`) });
  expect(await up(url, ['--allow-git-host', host])).toMatchObject({ code: 0 });
  expect(await up(url, [], { SLUICE_ALLOW_GIT_HOST: `other:1, ${host}` })).toMatchObject({ code: 0 });
});

test('what cannot be permitted or trusted is said before anything is written', async () => {
  expect(await up('https://git.example.com/a.git', ['--allow-git-host', 'http://x'])).toMatchObject({
    code: 2,
    output: expect.stringContaining('HOST:PORT'),
  });
  expect(await up('https://git.example.com/a.git', ['--git-ca', join(folder, 'none.pem')])).toMatchObject({
    code: 2,
    output: expect.stringContaining('--git-ca'),
  });
});
