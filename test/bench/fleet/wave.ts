import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeObject } from '../../support/api/kube-api.ts';
import { RunningUp } from '../../support/api/running-up.ts';
import { startServer } from '../git-server-process.ts';
import { git } from '../synthetic-repository.ts';

export interface WaveFigures {
  readonly targets: number;
  readonly repositories: number;
  /** Milliseconds from the creation of the plan until it records all approvals. */
  readonly elapsed: number;
  readonly pushes: number;
  /** On the main branches, by the wave. */
  readonly commits: number;
}

const PLANS = '/apis/sluice.dev/v1alpha1/namespaces/default/waveplans';
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const POLL_MS = 50;
const TIMEOUT_MS = 300_000;

/** One wave approves proposals, which are in Git already, in repositories behind HTTP. */
export async function waveOf(
  folder: string,
  { targets, perRepository }: { readonly targets: number; readonly perRepository: number },
): Promise<WaveFigures> {
  const repositories = Math.ceil(targets / perRepository);
  const edges = Array.from({ length: repositories }, (_, index) => `edge-${index}`);
  await makeProposals(folder, edges, Math.min(perRepository, targets));
  const server = await startServer(folder);
  try {
    const config = join(folder, 'config.yaml');
    const objects = edges.map((name) => ({
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name } },
      spec: { git: { repo: `${server.url}/${name}.git` } },
    }));
    await writeFile(config, objects.map((object) => `---\n${JSON.stringify(object)}\n`).join(''));
    await using up = await RunningUp.start(join(folder, 'data'), { words: ['--config', config] });
    const { api } = up;
    const total = repositories * perRepository;
    await until(async () => {
      const { body } = await api.get(REVISIONS);
      const items = (body as { readonly items?: readonly KubeObject[] }).items ?? [];
      return items.filter(({ spec }) => (spec as { lifecycle?: string }).lifecycle === 'Proposed').length >= total;
    });
    await server.traffic();
    const began = performance.now();
    const plan = { apiVersion: 'sluice.dev/v1alpha1', kind: 'WavePlan', metadata: { name: 'fleet' } };
    await api.post(PLANS, { ...plan, spec: { waves: [{ name: 'all', percent: 100 }] } });
    await until(async () => {
      const { body } = await api.get(`${PLANS}/fleet`);
      const { status } = body as { readonly status?: { readonly targets?: { readonly approved: number } } };
      return status?.targets?.approved === total;
    });
    const elapsed = performance.now() - began;
    const { pushes } = await server.traffic();
    await up.end();
    let commits = 0;
    for (const name of edges) {
      const count = await git(['-C', join(folder, `${name}.git`), 'rev-list', '--first-parent', '--count', 'main']);
      // The first one was there before.
      commits += Number(count) - 1;
    }
    return { targets: total, repositories, elapsed, pushes, commits };
  } finally {
    server.stop();
  }
}

async function makeProposals(folder: string, edges: readonly string[], count: number): Promise<void> {
  const [first = '', ...others] = edges.map((name) => join(folder, `${name}.git`));
  await git(['init', '--quiet', '--bare', '--initial-branch=main', first]);
  const committer = 'committer bench <bench@example.com> 1767225600 +0000\n';
  const stream = [
    `commit refs/heads/main\nmark :1\n${committer}data 5\nfirst\nM 100644 inline README.md\ndata 5\nbench\n`,
  ];
  for (let number = 0; number < count; number += 1) {
    const kptfile = `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: site-${number}\n`;
    const change = `from :1\nM 100644 inline site-${number}/Kptfile\ndata ${kptfile.length}\n${kptfile}\n`;
    stream.push(`commit refs/heads/proposed/site-${number}/v1\n${committer}data 4\nsite\n${change}`);
  }
  await git(['-C', first, 'fast-import', '--quiet'], stream.join(''));
  for (const other of others) await cp(first, other, { recursive: true });
}

async function until(isDone: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + TIMEOUT_MS;
  while (!(await isDone())) {
    if (Date.now() > end) throw new Error(`it was not so within ${TIMEOUT_MS / 1000} s`);
    await delay(POLL_MS);
  }
}
