import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { freezeKind } from '../../../src/resource/kinds/sluice/freeze.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';
import { type HostMerge, hostMerges } from '../merged/host-merges.ts';
import { describeBypass } from './describe-bypass.ts';

const GATED = { requiredGates: [{ conditionType: GATE, approveOnly: true }] };
const MARKER = '<!-- sluice:comment topic=out-of-band -->';

describe('the merge of a proposal that bypasses rules', () => {
  const open = eachProposals();
  let at: Proposals;
  let counted: HostMerge[];
  let stop: () => void;
  beforeEach(() => {
    at = open();
    counted = [];
    stop = hostMerges.subscribe((one) => void counted.push(one));
  });
  afterEach(() => stop());

  async function proposed(spec: Record<string, unknown> = {}): Promise<string> {
    await at.policy({ publishOn: 'merge' }, spec);
    const name = await at.propose();
    await at.reconcile(name);
    return name;
  }
  const comments = () => (at.forge.commentsOf.get(1) ?? []).map(({ body }) => body);

  test('is reported by an event, a comment with the closed gates and rules, the text of the pull request and the metric', async () => {
    const name = await proposed(GATED);
    const key = { namespace: 'default', name: 'core' };
    await at.world.client.create(freezeKind, { metadata: key, spec: { reason: 'repair' } });
    await expect.poll(() => at.world.policyFor(at.revision(name)).freezes).toHaveLength(1);
    const commit = await at.mergeHead(name, 'bob');
    at.forge.change(1, { closedAt: new Date(at.clock.now()).toISOString() });
    await at.readMerge(name);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: { reason: 'GateUnmet' } });
    expect((await at.world.events(name)).at(-1)).toMatch(/^OutOfBand: .*gate example.com\/Tested is closed/);
    const [comment = '', ...more] = comments();
    expect(more).toEqual([]);
    expect(comment).toContain(`${MARKER}\n### Out of band`);
    expect(comment).toContain(
      '`bob` merged https://git.example.com/owner/apps/pulls/1 although package revision `apps.app.w1`',
    );
    expect(comment).toContain('recorded as `OutOfBand`. **Targets do not deliver it by default.**');
    expect(comment).toContain(`- the gate \`${GATE}\` is closed (\`Missing\`): `);
    expect(comment).toMatch(/^- the rule `Freeze`: `.*frozen by Freeze default\/core/m);
    expect(counted).toEqual([{ origin: 'proposal', result: 'out_of_band' }]);
    await at.reconcile(name);
    expect(at.forge.pulls[0]?.body).toMatch(
      /is Published now\. \*\*It is out of band\*\* \(`GateUnmet`: `.*example.com\/Tested.*`\)\. Targets do not deliver it by default/,
    );
    expect(comments()).toHaveLength(1);
  });

  test('names missing approvals, and changes that reviewers requested', async () => {
    const name = await proposed({ approval: { quorum: { required: 2 } } });
    at.forge.review(1, 'carl', 'changes-requested', at.revision(name).commit);
    await at.mergeHead(name, 'bob');
    await at.readMerge(name);
    expect(comments()[0]).toMatch(/^- `apps.app.w1 was merged with 1 of 2 approvals/m);
    expect(comments()[0]).toMatch(/^- `apps.app.w1 was merged although changes were requested by carl/m);
  });

  test('has one comment where the process ended before it was recorded, and a host that permits none does not stop that', async () => {
    const name = await proposed(GATED);
    await at.mergeHead(name, 'bob');
    at.forge.after = (method) => {
      if (method === 'setComment') throw new Error('the process ends');
    };
    await expect(at.readMerge(name)).rejects.toThrow('the process ends');
    expect(at.revision(name).lifecycle).toBe('Proposed');
    at.forge.after = () => undefined;
    at.restart();
    at.forge.before = (method) => {
      if (method === 'setComment') throw new SluiceError('Refused', 'the conversation is locked');
    };
    await at.readMerge(name);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: { reason: 'GateUnmet' } });
    expect(comments()).toHaveLength(1);
    expect(await at.world.events(name)).toContainEqual(expect.stringMatching(/^ReplyFailed: .*is locked/));
    expect(counted).toEqual([{ origin: 'proposal', result: 'out_of_band' }]);
  });

  test('counts as published without a comment where nothing was bypassed', async () => {
    const name = await proposed();
    await at.mergeHead(name, 'bob');
    await at.readMerge(name);
    expect(at.revision(name).outOfBand).toBeUndefined();
    expect(comments()).toEqual([]);
    expect(counted).toEqual([{ origin: 'proposal', result: 'published' }]);
  });

  test('counts once as not published where it merged another package, which is no bypass', async () => {
    const name = await proposed(GATED);
    const kptfile = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: app}\n';
    const commit = await at.world.push(at.path, { 'app/Kptfile': kptfile });
    at.forge.change(1, { state: 'merged', merged: { commit, by: 'bob' } });
    await at.readMerge(name);
    await at.reconcile(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    expect(comments()).toEqual([]);
    expect(counted).toEqual([{ origin: 'proposal', result: 'not_published' }]);
  });
});

test('hostile texts stay code, and are bounded', () => {
  const about = { name: 'apps.app.w1', pullUrl: 'https://git.example.com/owner/apps/pulls/1', by: '`@all' };
  const text = describeBypass(
    about,
    new SluiceError('Refused', `\`</details>\n@everyone fixes #1 ${'x'.repeat(5000)}`),
  );
  expect(text).toContain('`ˋ@all` merged');
  expect(text).toMatch(/^- `ˋ<\/details> @everyone fixes #1 x+…`$/m);
  expect(text.length).toBeLessThan(2000);
});
