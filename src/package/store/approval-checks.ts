import { SluiceError } from '../../foundation/sluice-error.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { Approval } from '../model/record/record.ts';
import { approverOfRecord } from '../model/record/withdrawn-approval.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { RevisionUpdate } from '../plan/update.ts';
import type { RevisionEvaluation } from './evaluate-revision.ts';
import type { RevisionStoreOptions } from './revision-store-options.ts';

type Options = Pick<RevisionStoreOptions, 'approvalProblem' | 'reserveApproval' | 'mayStillApprove'>;

/** An approval that is requested. */
interface RequestedApproval {
  readonly revision: PackageRevision;
  readonly update: RevisionUpdate;
  evaluate(): Promise<Pick<RevisionEvaluation, 'content' | 'gates' | 'policy'>>;
}

/** What is checked at an approval besides the rules of the kernel: conditions as they are now, and the rights of users who approved before. */
export class ApprovalChecks {
  readonly #problemOf: NonNullable<Options['approvalProblem']>;
  readonly #reserve: NonNullable<Options['reserveApproval']>;
  readonly #mayStillApprove: NonNullable<Options['mayStillApprove']>;

  constructor({
    approvalProblem = async () => undefined,
    reserveApproval = async () => () => undefined,
    mayStillApprove = async () => true,
  }: Options) {
    this.#problemOf = approvalProblem;
    this.#reserve = reserveApproval;
    this.#mayStillApprove = mayStillApprove;
  }

  /** Calls `write` with the update after the checks. Until it ends, other approvals count this one. */
  async run<Result>(
    approval: RequestedApproval,
    context: RequestContext,
    write: (checked: RevisionUpdate) => Promise<Result>,
  ): Promise<Result> {
    const release = await this.#reserve(approval.revision);
    try {
      const update = await this.#withoutWithdrawn(approval, context);
      return await write(await this.#checkGates({ ...approval, update }, context));
    } finally {
      release();
    }
  }

  /**
   * Returns the update with the recorded approvals that do not count any more, since their users have lost the right. Of some the groups are not known,
   * by which the right is checked: those of controllers and of commands without an API, which grant no rights, and of earlier versions. They stay. A
   * merge of the Git host is checked before it.
   */
  async #withoutWithdrawn(
    { revision: { name, namespace, record }, update }: RequestedApproval,
    { actor, signal }: RequestContext,
  ): Promise<RevisionUpdate> {
    if (update.merged !== undefined) return update;
    const isWithdrawn = async (approval: Approval) => {
      const { subject, allGroups, namespace: given = namespace } = approval;
      if (allGroups === undefined || subject === actor.name) return false;
      return !(await this.#mayStillApprove(approverOfRecord(approval), { namespace: given, name }, signal));
    };
    const approvals = record?.approvals ?? [];
    const checked = await Promise.all(approvals.map(isWithdrawn));
    const withdrawn = approvals.filter((_approval, index) => checked[index]);
    return withdrawn.length === 0 ? update : { ...update, withdrawn };
  }

  /**
   * Refuses an approval if a gate requires a condition that is currently false, regardless of its recorded value; otherwise warns. Returns the
   * update with the gate that the merge of the Git host bypassed.
   */
  async #checkGates(
    { revision, update, evaluate }: RequestedApproval,
    context: RequestContext,
  ): Promise<RevisionUpdate> {
    // The kernel refuses a revision that cannot be read.
    if (revision.kptfile === undefined) return update;
    const { content, gates, policy } = await evaluate();
    const problem = await this.#problemOf(revision, content.files);
    if (problem === undefined) return update;
    const { type, message } = problem;
    const isGate = gates.some((gate) => gate.type === type);
    const isClosed = isGate && policy.enforcement === 'enforce' && update.breakGlass !== true;
    if (isClosed && update.merged?.recordBypass !== true)
      throw new SluiceError('Refused', `gate ${type} is closed now: ${message}`);
    context.warn?.(message);
    return isClosed ? { ...update, closedNow: type } : update;
  }
}
