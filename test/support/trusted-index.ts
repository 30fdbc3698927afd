import type { GitRepository, Oid } from '../../src/git/git-repository.ts';
import { openRepository } from '../../src/git/open/open-repository.ts';
import { FactCache } from '../../src/package/index/facts/fact-cache.ts';
import { RevisionIndex } from '../../src/package/index/revision-index.ts';
import { recordRef, watchedPrefixes } from '../../src/package/model/identity/layout.ts';
import { formatCommitMessage, type PublicationStatement } from '../../src/package/model/record/commit-message.ts';
import {
  emptyRecord,
  formatRecord,
  type RecordStatement,
  type Verdict,
} from '../../src/package/model/record/record.ts';
import { MemoryTrustLedger } from '../../src/package/trust/ledger/memory-trust-ledger.ts';
import { STATEMENT_VERSION } from '../../src/package/trust/statement/statement.ts';
import { asWritten, fakeKey, fakeSigned, fakeTrust } from '../../src/package/trust/testing/fake-signatures.ts';
import { scratchRepository } from './scratch-repository.ts';

export const layout = { branch: 'main', directory: '', recordPrefix: 'refs/sluice/records/' };
const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
export const T = '2026-01-01T00:00:00Z';
export const NAME = 'r.shop.v1';
export const RECORD = recordRef(layout, 'shop', 'v1');
export const verdict: Verdict = {
  type: 'G',
  status: 'True',
  inputs: { content: 'c' },
  by: 'qa',
  face: 'api',
  at: T,
  since: T,
};

/** A repository with a draft, and what makes records and approvals of it. Dispose it when done. */
export async function setUp() {
  const scratch = await scratchRepository();
  const git = await openRepository(scratch.path);
  const signature = { name: 'x', email: 'x@example.com', time: 0 };
  const edits = (...paths: string[]) =>
    new Map(paths.map((path) => [`${path}/Kptfile`, { data: Buffer.from(KPTFILE) }]));
  const tree = await git.editTree(undefined, edits('shop'));
  const empty = await git.editTree(undefined, new Map());
  const commit = (message: string, parents: readonly Oid[] = [], of = tree) =>
    git.writeCommit({ tree: of, parents, author: signature, committer: signature, message });
  const set = async (ref: string, oid: Oid | undefined) => {
    const old = await git.resolveRef(ref);
    if (oid === undefined && old !== undefined) await git.transaction([{ type: 'delete', ref, old }]);
    else if (oid !== undefined && old === undefined) await git.transaction([{ type: 'create', ref, new: oid }]);
    else if (oid !== undefined && old !== undefined) await git.transaction([{ type: 'update', ref, old, new: oid }]);
  };
  const record = (sequence: number, key = 'own', overrides: Partial<RecordStatement> = {}) => {
    const statement: RecordStatement = {
      ...{ statement: STATEMENT_VERSION, kind: 'record', repository: 'id', package: 'shop', workspace: 'v1' },
      ...{ sequence, previous: null },
      record: { ...emptyRecord('c'), verdicts: [verdict], labels: { sequence: `${sequence}` } },
      ...overrides,
    };
    return commit(formatRecord('r', asWritten(fakeSigned(statement, key))), [], empty);
  };
  /** The approval of a revision of the package. */
  const approval = async (revision: number, parents: readonly Oid[], key = 'own') => {
    const statement: PublicationStatement = {
      ...{
        statement: STATEMENT_VERSION,
        kind: 'publication',
        repository: 'id',
        package: 'shop',
        workspace: `w${revision}`,
      },
      ...{ sequence: 1, previous: null, revision, draft: 'd', record: { verdicts: [], steps: [], content: 'c' } },
      ...{ branch: layout.branch, onto: parents[0] ?? '' },
      tree: (await git.statObjects([`${tree}:shop`]))[0]?.oid ?? '',
    };
    const context = { actor: { name: 'ann' }, face: 'cli' } as const;
    return commit(
      formatCommitMessage('approve', { context, action: 'approve', statement: asWritten(fakeSigned(statement, key)) }),
      parents,
    );
  };
  await set('refs/heads/drafts/shop/v1', await commit('draft\n'));
  return {
    ...{ scratch, git, set, record, approval, commit },
    [Symbol.asyncDispose]: async () => {
      await git.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

/** A server with a ledger of its own. */
export function server(
  git: GitRepository,
  options: { branch?: string; isFirstLook?: boolean; cache?: FactCache; ledger?: MemoryTrustLedger } = {},
) {
  const { isFirstLook = false, cache = new FactCache(), ledger = new MemoryTrustLedger() } = options;
  // Records of these tests were made elsewhere.
  for (const key of ['own', 'old']) ledger.addKey(fakeKey(key, 'added'));
  const trust = fakeTrust(ledger, 'id', { branch: options.branch ?? layout.branch });
  let checks = 0;
  const { signerOf } = trust;
  trust.signerOf = (signed) => {
    checks += 1;
    return signerOf.call(trust, signed);
  };
  const origin = {
    repository: 'r',
    namespace: 'default',
    layout: { ...layout, branch: options.branch ?? layout.branch },
  };
  const index = new RevisionIndex({ ...origin, git, cache, trust, isFirstLook });
  const refresh = async () => index.apply(index.diff(await git.listRefs(watchedPrefixes(origin.layout))));
  /** The row of the draft: its sequence and verdicts, or why its record does not count. */
  const row = () => {
    const { record, recordDistrust } = index.get(NAME) ?? {};
    return (
      recordDistrust?.reason ??
      (record === undefined ? 'none' : `${record.labels?.sequence}, ${record.verdicts.length}`)
    );
  };
  return { index, ledger, trust, refresh, row, origin: { ...origin, repositoryId: 'id' }, checks: () => checks };
}
