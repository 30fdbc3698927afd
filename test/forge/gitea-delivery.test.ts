import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { openForges } from '../../src/app/controllers/forges.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { secretKind } from '../../src/resource/kinds/core/secret.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { CONTEXT, controllerOn, publish, publishNext, statusOf, type TargetSpec } from '../support/delivery.ts';
import { fixture } from '../support/fixture.ts';
import { CHECKOUT } from '../support/page-shell.ts';
import { skipFor } from '../support/skip.ts';
import { Gitea, OWNER } from './support/gitea.ts';

const missing = inject('giteaMissing');
const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });
const WAIT = { timeout: 90_000, interval: 200 };
const BRANCH = 'sluice/delivery/edge';

interface Pull {
  readonly number: number;
  readonly title: string;
  readonly state: string;
  readonly merged: boolean;
  readonly head: { readonly sha: string };
  readonly labels: readonly { readonly name: string }[];
}

describe('deliveries by pull request', { ...skipFor(missing !== '' && missing), timeout: 300_000 }, () => {
  test('the example delivers to a protected branch: by a merge of Sluice once a check is there, and by one of a user', async () => {
    await using world = await fixture();
    await world.register('apps');
    await gitea.createRepository('edge-by-pull');
    const path = `/repos/${OWNER.username}/edge-by-pull`;
    await gitea.createWriter('edge-sluice', 'edge-by-pull');
    const token = await gitea.createToken('edge-sluice', 'delivery', ['write:repository', 'write:issue']);
    const rule = { rule_name: 'main', enable_push: false, block_on_outdated_branch: true };
    const checks = { enable_status_check: true, status_check_contexts: ['ci'] };
    await gitea.api('POST', `${path}/branch_protections`, { ...rule, ...checks });
    const { client } = world;
    const secret = { username: 'edge-sluice', token };
    await client.create(secretKind, { metadata: { name: 'forge' }, stringData: { ...secret, password: token } });
    const example = readFileSync(join(CHECKOUT, 'examples/pull-requests/target-by-pull-request.yaml'), 'utf8');
    const { spec } = parse(example.replaceAll('https://git.example.com', gitea.url)) as { spec: TargetSpec };
    const git = { ...spec.git, repo: gitea.addressOf('edge-by-pull') };
    await client.create(deliveryTargetKind, { metadata: { name: 'edge' }, spec: { ...spec, git, selector: {} } });
    const forges = openForges({ client, network: DEFAULT_NETWORK, clock: systemClock });
    const controller = controllerOn(world, { openForge: forges.forTarget });
    const reconcile = async () => {
      await controller.reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
      return statusOf(world);
    };
    const reaches = (state: object) => expect.poll(reconcile, WAIT).toMatchObject(state);
    const pulls = async () => (await gitea.api('GET', `${path}/pulls?state=all`)) as Pull[];
    const succeed = async () => {
      const [pull] = await pulls();
      await gitea.api('POST', `${path}/statuses/${pull?.head.sha}`, { context: 'ci', state: 'success' });
    };
    const fileOn = async (branch: string) => {
      const file = `${path}/contents/clusters/edge/web/cm.yaml?ref=${encodeURIComponent(branch)}`;
      const { content } = (await gitea.api('GET', file)) as { content: string };
      return Buffer.from(content, 'base64').toString();
    };

    const web = await publish(world, 'web');
    await reaches({ reason: 'WaitsForMerge', message: expect.stringMatching(/status checks/), packages: [] });
    expect(await pulls()).toMatchObject([
      { title: 'Deliver to edge', state: 'open', merged: false, labels: [{ name: 'delivery' }] },
    ]);
    // Nothing else gets to the branch: it is protected from Sluice too.
    expect(await fileOn(BRANCH)).toContain('value: "1"');
    await expect(fileOn('main')).rejects.toThrow(/404/);
    await succeed();
    await reaches({ reason: 'Delivered', packages: [{ package: 'web', revision: 1 }] });
    expect(await fileOn('main')).toContain('value: "1"');
    expect(await pulls()).toMatchObject([{ merged: true }]);
    expect(await gitea.refs('edge-by-pull')).not.toContain(BRANCH);
    await gitea.finishQueued();

    // A slow host gets to the removal of the branch later, and closes the next pull request of a branch with that name.
    await publishNext(world, web, 'w2', '2');
    await reaches({ reason: 'WaitsForMerge' });
    await gitea.handleRemovalLate('edge-by-pull', BRANCH, 'edge-sluice');
    const [before] = await pulls();
    expect(before?.state).toBe('closed');
    await reaches({ reason: 'WaitsForMerge', message: expect.stringMatching(/pulls\/2\b/) });
    expect((await pulls()).map(({ state }) => state)).toEqual(['open', 'closed']);
    expect(await world.events('edge')).toContainEqual(expect.stringMatching(/^PullRequestReopened: .*\/2 is opened/));

    // The branch of the target moves on, which its rules do not permit for a head.
    await gitea.api('DELETE', `${path}/branch_protections/main`);
    const content = Buffer.from('x').toString('base64');
    await gitea.api('POST', `${path}/contents/other.txt`, { content, branch: 'main' });
    await gitea.api('POST', `${path}/branch_protections`, { ...rule, ...checks });
    await succeed();
    await expect
      .poll(async () => {
        await reconcile();
        return (await pulls())[0]?.head.sha;
      }, WAIT)
      .not.toBe(before?.head.sha);
    expect(await pulls()).toHaveLength(2);
    await succeed();
    await reaches({ reason: 'Delivered', packages: [{ package: 'web', revision: 2 }] });

    // A user closes, reopens and merges.
    await client.patch(deliveryTargetKind, { name: 'edge' }, { spec: { pullRequest: { merge: 'manual' } } });
    await publishNext(world, web, 'w3', '3');
    await reaches({ reason: 'WaitsForMerge' });
    // What it may have closed for the removal of the last branch is opened again.
    await gitea.finishQueued();
    await reaches({ reason: 'WaitsForMerge' });
    const number = (await pulls())[0]?.number;
    await gitea.api('POST', `${path}/issues/${number}/comments`, { body: 'not on a Friday' });
    await gitea.api('PATCH', `${path}/pulls/${number}`, { state: 'closed' });
    await reaches({ reason: 'PullRequestClosed', message: expect.stringContaining('by owner (not on a Friday)') });
    await gitea.api('PATCH', `${path}/pulls/${number}`, { state: 'open' });
    await reaches({ reason: 'WaitsForMerge' });
    await succeed();
    await expect
      .poll(
        () =>
          gitea
            .api('POST', `${path}/pulls/${number}/merge`, { Do: 'squash', MergeTitleField: 'by hand' })
            .then(() => 'merged', String),
        WAIT,
      )
      .toBe('merged');
    await reaches({ reason: 'Delivered', packages: [{ package: 'web', revision: 3 }] });
    expect(await pulls()).toHaveLength(3);
  });
});
