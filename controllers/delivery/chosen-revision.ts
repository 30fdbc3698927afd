import { gatesOf } from '../../kptfile-schema/index.ts';
import type { DesiredRevision } from '../../src/delivery/tree/desired-result.ts';
import { GATE_STATUSES, type GateVerdict } from '../../src/delivery/tree/trailers.ts';
import type { Oid } from '../../src/git/git-repository.ts';
import { publishedRecordOf } from '../../src/package/model/record/commit-message.ts';
import { verdictsByType } from '../../src/package/model/record/record.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { Choice } from './selected-packages.ts';

/**
 * A revision that a target delivers. A class, since a target keeps one for each of thousands of packages: an object literal with getters
 * takes eight times as much memory.
 */
export class ChosenRevision implements DesiredRevision {
  readonly repository: string;
  readonly package: string;
  readonly revision: number;
  readonly sourceCommit: Oid;
  readonly sourceTree: Oid;
  declare readonly outOfBand?: string;
  readonly #row: PackageRevision;
  readonly #from: PackageRepository;
  readonly #lookUp: (revision: DesiredRevision) => DesiredRevision['built'];

  /** `lookUp` finds the manifests, if they are in memory. */
  constructor(
    { row, outOfBand, repository, package: path, revision, commit }: Choice,
    from: PackageRepository,
    sourceTree: Oid,
    lookUp: (revision: DesiredRevision) => DesiredRevision['built'],
  ) {
    this.repository = repository;
    this.package = path;
    this.revision = revision;
    this.sourceCommit = commit ?? row.commit;
    this.sourceTree = sourceTree;
    if (outOfBand !== undefined) this.outOfBand = outOfBand.message;
    this.#row = row;
    this.#from = from;
    this.#lookUp = lookUp;
  }

  get built(): DesiredRevision['built'] {
    return this.#lookUp(this);
  }

  /**
   * Computed only for revisions that are committed: the gates of the Kptfile and of policies, with their verdicts in the approval. A verdict that did
   * not open its gate then, such as one for earlier content, is none.
   */
  get gates(): readonly GateVerdict[] {
    const row = this.#row;
    const types = row.kptfile === undefined ? [] : gatesOf(row.kptfile);
    const required = this.#from.policyFor(row).requiredGates.map(({ conditionType }) => conditionType);
    const published = publishedRecordOf(row.tip.facts);
    const verdicts = verdictsByType(published?.verdicts ?? []);
    const states = new Map(published?.gates?.map(({ type, state }) => [type, state]));
    return [...new Set([...types, ...required])].map((type) => {
      const verdict = verdicts.get(type);
      const status = closedStatus(states.get(type)) ?? verdict?.status ?? 'Unknown';
      return { type, status, ...(verdict === undefined ? {} : { by: verdict.by }) };
    });
  }
}

/** Why a gate was closed; undefined where its verdict is the reason. */
function closedStatus(state: string | undefined): GateVerdict['status'] | undefined {
  return GATE_STATUSES.find((status) => status === state);
}
