import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { initRepository } from '../../../src/git/open/open-repository.ts';
import { issueCertificate } from '../../../src/server/certificates/issue-certificate.ts';
import { sluice } from '../../support/cli.ts';
import { type GitServer, startGitServer } from '../../support/git/git-server.ts';
import { commitFiles } from '../../support/scratch-repository.ts';

const DAY = 86_400_000;

/** A Git host on this machine, over HTTP and over HTTPS with a certificate of an authority that no program knows. */
export interface OperatorNetwork extends AsyncDisposable {
  readonly folder: string;
  readonly git: GitServer;
  /** Of the host over HTTPS. */
  readonly port: number;
  /** Path of the certificate of the authority. */
  readonly authorities: string;
  /** A first look at a repository by the real program, in a new data folder. */
  up(
    repo: string,
    words: readonly string[],
    environment?: Readonly<Record<string, string>>,
  ): Promise<{ code: number | null; output: string }>;
}

export async function operatorNetwork(): Promise<OperatorNetwork> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-operator-'));
  const repository = await initRepository(join(folder, 'packages.git'));
  await commitFiles(
    repository,
    { 'web/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n' },
    0,
  );
  await repository.close();
  const git = await startGitServer({ root: folder });
  const lifetime = { notBefore: Date.now() - DAY, notAfter: Date.now() + 30 * DAY };
  const ca = await issueCertificate({ commonName: 'corporate', usage: 'authority', names: [], ...lifetime });
  const names = ['localhost', hostname()];
  const server = await issueCertificate({ commonName: 'git', usage: 'server', names, ...lifetime }, ca);
  const authorities = join(folder, 'ca.pem');
  await writeFile(authorities, ca.certificate);
  const https = createServer({ key: server.key, cert: server.certificate }, (incoming, answer) => {
    const { method, headers, url } = incoming;
    incoming.pipe(
      request(`${git.url}${url}`, { method, headers }, (reply) => {
        answer.writeHead(reply.statusCode ?? 0, reply.headers);
        reply.pipe(answer);
      }),
    );
  });
  await new Promise<void>((resolve) => https.listen(0, '0.0.0.0', resolve));
  let count = 0;
  return {
    folder,
    git,
    port: (https.address() as AddressInfo).port,
    authorities,
    async up(repo, words, environment = {}) {
      const config = join(folder, `config-${count}.yaml`);
      await writeFile(
        config,
        `apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: {name: packages}\nspec: {git: {repo: "${repo}"}}\n`,
      );
      const data = join(folder, `data-${count++}`);
      const all = ['up', '--data', data, '--config', config, '--until-idle', ...words];
      const { code, stdout, stderr } = await sluice(all, { environment });
      return { code, output: stdout + stderr };
    },
    async [Symbol.asyncDispose]() {
      https.closeAllConnections();
      https.close();
      await git.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
