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
  return describeProposal({ explanation: EXPLANATION, diff, review: { ...REVIEW, ...review }, upstream: undefined });
}

describe('the text of a proposal', () => {
  test('lists the commands that the policy permits', () => {
    expect(describeWith({})).toContain('`/sluice approve`');
    expect(describeWith({})).toContain('`/sluice set <condition> True|False|Unknown <message>`');
    const command = describeWith({ publishOn: 'approval' });
    expect(command).toContain('`/sluice why`, `/sluice reject <reason>`, `/sluice rerun`');
    expect(command).not.toMatch(/sluice (approve|set)/);
    expect(describeWith({ approvers: [] })).not.toContain('/sluice');
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
