import { describe, expect, test } from 'vitest';
import { describeProposal, gateTable } from './describe-proposal.ts';

type Proposal = Parameters<typeof describeProposal>[0];

const EXPLANATION: Proposal['explanation'] = {
  ...{ name: 'apps.app.w1', repository: 'apps', package: 'app', workspace: 'w1', lifecycle: 'Proposed', revision: 0 },
  ...{ latest: false, commit: 'a'.repeat(40), enforcement: 'enforce', gates: [], contributors: [], reasons: [] },
  ...{ resolvers: [], delivery: [], next: [] },
};
const REVIEW: Proposal['review'] = {
  policy: 'review',
  forge: { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge', key: 'token' } },
  ...{ publishOn: 'review', mergeMethod: 'merge' },
  ...{ reviewers: { users: [], teams: [] }, labels: [] },
  ...{ userPullRequests: 'check', gateChecks: [], approvers: [{ user: 'bob', subject: 'bob@example.com' }] },
};

function describeWith(review: Partial<Proposal['review']>): string {
  const diff = { to: 'apps.app.w1', files: [] };
  return describeProposal({
    ...{ explanation: EXPLANATION, diff, rules: [], upstream: undefined },
    review: { ...REVIEW, ...review },
  });
}

describe('the text of a proposal', () => {
  test('lists the commands that the policy permits', () => {
    expect(describeWith({})).toContain('`/sluice approve`');
    expect(describeWith({})).toContain('`/sluice set <condition> <True, False or Unknown> <message>`');
    const forge = { ...REVIEW.forge, provider: 'github' } as const;
    expect([{}, { forge }].map((one) => describeWith(one).includes('unless the webhook for comments'))).toEqual([
      true,
      false,
    ]);
    const command = describeWith({ publishOn: 'approval' });
    expect(command).toContain('`/sluice why`, `/sluice reject <reason>`, `/sluice rerun`');
    expect(command).not.toMatch(/sluice (approve|set)/);
    expect(describeWith({ approvers: [] })).not.toContain('/sluice');
  });

  test('shows since when a gate is closed, who can open it and why, and where the package was copied from', () => {
    const since = '2026-01-02T03:04:05Z';
    const closed = {
      ...{ type: 'example.com/Tested', open: false, state: 'NotTrue', since, settledBy: 'group `testers`' },
      ...{ requiredBy: [], approveOnly: true, boundTo: [], changed: [] },
    };
    const gates: Proposal['explanation']['gates'] = [
      { ...closed, explanation: '3 of 100 requests\nfailed' },
      { ...closed, type: 'example.com/Open', open: true, state: 'True', explanation: 'it succeeded' },
    ];
    const upstream = 'https://git.example.com/acme/blueprints.git/web@web/v3';
    const diff = { to: 'apps.app.w1', files: [] };
    const text = describeProposal({
      explanation: { ...EXPLANATION, gates },
      diff,
      review: REVIEW,
      rules: [],
      upstream,
    });
    expect(text).toContain(
      [
        '| Gate | State | Since | Settled by | Explanation |',
        '|---|---|---|---|---|',
        `| \`example.com/Tested\` | **NotTrue** | ${since} | \`group ˋtestersˋ\` | \`3 of 100 requests failed\` |`,
        `| \`example.com/Open\` | Open | ${since} |  |  |`,
      ].join('\n'),
    );
    expect(text).toContain(`Package revision \`apps.app.w1\`. Upstream: \`${upstream}\`.`);
    expect(describeWith({})).not.toContain('Upstream:');
  });

  test('shows what targets report of its delivery', () => {
    const reasons = [{ reason: 'Undeliverable', message: 'edge would deliver the same object of two packages: `x`' }];
    const text = describeProposal({
      explanation: { ...EXPLANATION, reasons },
      ...{ diff: { to: 'apps.app.w1', files: [] }, review: REVIEW, rules: [], upstream: undefined },
    });
    expect(text).toContain('\n\n**Delivery:** `edge would deliver the same object of two packages: ˋxˋ`\n\n');
  });

  test('a table of many gates with long texts stays within the limits of hosts, and counts what it leaves out', () => {
    const gates = Array.from({ length: 150 }, (_, at) => ({
      ...{ type: `example.com/gate-${at}`, open: false, state: 'NotTrue', settledBy: '@all '.repeat(200) },
      explanation: '`| <b>'.repeat(500),
    }));
    const table = gateTable(gates);
    expect(table.length).toBeLessThan(13_000);
    const listed = table.match(/example\.com\/gate/g)?.length ?? 0;
    expect(listed).toBeGreaterThan(5);
    expect(table).toContain(`\n${150 - listed} more gates are not listed.`);
  });
});
