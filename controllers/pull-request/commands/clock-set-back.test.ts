import { beforeEach, expect, test } from 'vitest';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';

const REQUIRED = { requiredGates: [{ conditionType: GATE, approveOnly: true }] };

const open = eachProposals();
let at: Proposals;
let name: string;
beforeEach(async () => {
  at = open();
  at.serveBranches();
  await at.policy({}, REQUIRED);
  name = await at.propose();
  await at.reconcile(name);
});

async function read(): Promise<void> {
  await at.reconcile('apps');
  for (let times = 0; times < 4; times += 1) await at.reconcile(name);
}
const executed = () => (at.revision(name).record?.commands?.entries ?? []).map(({ command }) => command);

/** The later of the two commands has the earlier time, and is listed first. */
function setBack(): void {
  const all = at.forge.commentsOf.get(1) ?? [];
  const why = all.find(({ body }) => body === '/sluice why');
  const time = new Date(Date.parse(why?.createdAt ?? '') - 1000).toISOString();
  const changed = all.map((one) =>
    one.body.startsWith('/sluice set') ? { ...one, createdAt: time, updatedAt: time } : one,
  );
  at.forge.commentsOf.set(
    1,
    changed.sort((one, other) => Date.parse(one.createdAt) - Date.parse(other.createdAt)),
  );
}

test.each([true, false])(
  'commands around the moment at which the clock of the host is set back are executed once and in order (read between: %s)',
  async (isReadBetween) => {
    at.forge.comment(1, 'bob', '/sluice why');
    if (isReadBetween) await read();
    at.forge.comment(1, 'bob', `/sluice set ${GATE} True`);
    setBack();
    for (let times = 0; times < 3; times += 1) await read();
    expect(executed()).toEqual(['/sluice why', `/sluice set ${GATE} True`]);
  },
);
