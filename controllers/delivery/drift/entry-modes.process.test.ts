import { beforeEach, expect, test } from 'vitest';
import type { ControllerOptions } from '../../../src/controller/controller.ts';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { findCondition } from '../../../src/resource/object/condition.ts';
import { CONTEXT, controllerOn, publish, statusOf } from '../../../test/support/delivery.ts';
import { site, useDeliveryWorld, world } from '../../../test/support/delivery-world.ts';
import { git as gitCli } from '../../../test/support/git/git-cli.ts';

let controller: ControllerOptions;
useDeliveryWorld();
beforeEach(() => {
  controller = controllerOn(world);
});

const FOLDER = 'clusters/edge/web';
const reconcile = () => controller.reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
const treeOf = () => gitCli(site, ['rev-parse', `main:${FOLDER}`]);
const drifts = async () => (await world.events('edge')).filter((event) => event.startsWith('Drifted'));

/** A commit of another writer with one changed entry. */
function setEntry(entry: string): void {
  const lines = ['commit refs/heads/main', 'committer Eve <eve@example.com> 1700000000 +0000', 'data 5', 'entry'];
  gitCli(site, ['fast-import', '--quiet'], [...lines, 'from refs/heads/main^0', entry, ''].join('\n'));
}

const TARGET_OF_LINK = 'data 11\n../../other';
const ENTRIES: readonly [change: string, entry: () => string, shown: string][] = [
  [
    'an executable file',
    () => `M 100755 ${gitCli(site, ['rev-parse', `main:${FOLDER}/cm.yaml`])} ${FOLDER}/cm.yaml`,
    'old mode 100644\nnew mode 100755',
  ],
  [
    'an executable list of files',
    () => `M 100755 ${gitCli(site, ['rev-parse', `main:${FOLDER}/kustomization.yaml`])} ${FOLDER}/kustomization.yaml`,
    'b/clusters/edge/web/kustomization.yaml\nold mode 100644\nnew mode 100755',
  ],
  [
    'a symbolic link to other content',
    () => `M 120000 inline ${FOLDER}/cm.yaml\n${TARGET_OF_LINK}`,
    'clusters/edge/web/cm.yaml has mode 120000',
  ],
  [
    'a symbolic link whose text is the file',
    () => `M 120000 ${gitCli(site, ['rev-parse', `main:${FOLDER}/cm.yaml`])} ${FOLDER}/cm.yaml`,
    'new file mode 120000',
  ],
  ['a submodule in place of a file', () => `M 160000 ${'1'.repeat(40)} ${FOLDER}/cm.yaml`, 'has mode 160000'],
  ['an added submodule', () => `M 160000 ${'1'.repeat(40)} ${FOLDER}/more`, 'clusters/edge/web/more has mode 160000'],
];

async function create(drift: 'Repair' | 'Report'): Promise<void> {
  await publish(world, 'web');
  await world.client.create(deliveryTargetKind, {
    metadata: { name: 'edge' },
    spec: { selector: {}, git: { repo: site, directory: 'clusters/edge' }, drift },
  });
  await reconcile();
}

test('an entry of another writer that is no plain file is drift, and is repaired', async () => {
  await create('Repair');
  const delivered = treeOf();
  for (const [change, entry, shown] of ENTRIES) {
    setEntry(entry());
    expect(treeOf(), change).not.toBe(delivered);
    await reconcile();
    expect(treeOf(), change).toBe(delivered);
    expect((await statusOf(world)).reason, change).toBe('Delivered');
    expect((await drifts()).join('\n'), change).toContain(shown);
  }
  // Also where the whole branch is read.
  setEntry(ENTRIES[0]?.[1]() ?? '');
  controller = controllerOn(world);
  await reconcile();
  expect(treeOf()).toBe(delivered);
  const head = gitCli(site, ['rev-parse', 'main']);
  await reconcile();
  expect(gitCli(site, ['rev-parse', 'main'])).toBe(head);
});

test('a changed mode stays and is reported where the target keeps drift', async () => {
  await create('Report');
  setEntry(ENTRIES[0]?.[1]() ?? '');
  const changed = treeOf();
  await reconcile();
  expect(treeOf()).toBe(changed);
  const { status, packages } = await statusOf(world);
  expect(findCondition(status?.conditions, 'Drifted')).toMatchObject({
    status: 'True',
    message: expect.stringContaining('new mode 100755'),
  });
  expect(packages).toMatchObject([{ package: 'web', drifted: true }]);
});
