import { type Gitea, OWNER } from '../../forge/support/gitea.ts';
import { forEachConcurrently } from './waiting.ts';

/** Milliseconds of the same requests without Sluice: for each branch a pull request with the label, and a status. */
export async function giteaFloor(gitea: Gitea, count: number, concurrency: number): Promise<number> {
  const repository = 'floor';
  await gitea.createRepository(repository);
  const base = `/repos/${OWNER.username}/${repository}`;
  const label = (await gitea.api('POST', `${base}/labels`, { name: 'package', color: '#1d76db' })) as { id: number };
  const numbers = Array.from({ length: count }, (_, index) => index);
  const commits = new Map<number, string>();
  for (const number of numbers) {
    const made = (await gitea.api('POST', `${base}/contents/app-${number}/file`, {
      ...{ content: Buffer.from(`${number}`).toString('base64'), branch: 'main', new_branch: `app-${number}` },
    })) as { commit: { sha: string } };
    commits.set(number, made.commit.sha);
  }
  const start = performance.now();
  await forEachConcurrently(numbers, concurrency, async (number) => {
    await gitea.api('POST', `${base}/pulls`, {
      ...{ head: `app-${number}`, base: 'main', title: `app ${number}`, body: 'x'.repeat(2000) },
      labels: [label.id],
    });
    const status = { context: 'sluice/ready', state: 'success', description: 'It has no gates' };
    await gitea.api('POST', `${base}/statuses/${commits.get(number)}`, status);
  });
  return performance.now() - start;
}
