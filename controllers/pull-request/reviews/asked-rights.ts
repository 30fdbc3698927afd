import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { Source } from '../../../src/controller/source.ts';
import type { Forge } from '../../../src/forge/forge.ts';
import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import { clusterRoleKind, roleKind } from '../../../src/resource/kinds/rbac/role.ts';
import { clusterRoleBindingKind, roleBindingKind } from '../../../src/resource/kinds/rbac/role-binding.ts';
import { type KubernetesObject, keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import type { Actor } from '../../../src/resource/object/request-context.ts';
import type { Kind } from '../../../src/resource/schema/kind.ts';
import type { MayApprove } from '../rights.ts';

/** Until the rights, or teams, of one repository are asked for again; up to a fifth is waited longer, so that many do not ask at once. */
const PAUSE_MS = 300_000;
const MAX_JITTER = 0.2;
/** After a change of roles that this process sees: what answers may see it a moment later, and many changes come together. */
const SETTLE_MS = 1000;
/** For so long an answer is one that is known, if no look has found another one; a refusal, which holds up a check, for less. */
const KNOWN_MS = 300_000;
const REFUSAL_KNOWN_MS = 30_000;
/**
 * Users whose rights, and memberships that are asked for in one look: each membership is a request to the Git host, of which it gets 24 an hour at
 * most for a repository.
 */
const MOST = { right: 100, team: 2 } as const;

const SUFFIX = ':rights';

type Teams = Pick<Forge, 'isTeamMember'>;

/** Roles decide about rights, and the Git host about teams. */
const KINDS = ['right', 'team'] as const;
type QuestionKind = (typeof KINDS)[number];

/** A question with its last answer, on which what a pull request shows depends. */
interface Question {
  readonly kind: QuestionKind;
  /** Equal for one user in all pull requests of the repository. */
  readonly id: string;
  /** Name of the revision, since roles can name objects; empty for teams. */
  readonly revision: string;
  readonly answer: boolean;
  /** In milliseconds of running time. */
  readonly askedMs: number;
  ask(signal: AbortSignal): Promise<boolean>;
}

interface Group {
  /** By what has asked it: the questions are for different revisions, of which a pull request can have several, and by their names. */
  readonly questions: Map<string, { readonly item: ObjectKey; readonly asked: Map<string, Question> }>;
  /** Answers until then are known no more, since one of them has changed. */
  changedMs: number;
  /** Number of looks that have asked it. */
  looks: number;
}

interface Asked {
  readonly key: ObjectKey;
  /** By `Question.id`, those that wait longest first. */
  readonly groups: Map<string, Group>;
  /** When those of each kind are asked again, in milliseconds of running time. */
  readonly dueMs: Record<QuestionKind, number>;
}

/** What one reconciliation asks, with the answers. */
export interface Asking {
  rights(mayApprove: MayApprove | undefined): MayApprove | undefined;
  /** The same with answers that are known, for what is only shown: in a cluster each question is a request. */
  knownRights(mayApprove: MayApprove | undefined): MayApprove | undefined;
  teams(forge: Teams): Teams;
  /** Takes the place of what the last reconciliation asked. */
  keep(): void;
}

/**
 * The rights and teams that the open pull requests of repositories depend on: a role that is bound, or a user who joins a team, wakes no controller by
 * itself. They are asked again now and then, each user once for all pull requests of a repository and for another one of them each time, since roles
 * can name objects. Only those pull requests are looked at again of whose answers one has changed.
 */
export class AskedRights {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #random: () => number;
  readonly #enqueue: (key: ObjectKey) => void;
  readonly #repositories = new Map<string, Asked>();
  /** Answers until then are known no more, since roles have changed. */
  #changedMs = Number.NEGATIVE_INFINITY;

  /** `enqueue` gets the keys for `look` into the work queue. */
  constructor(clock: Pick<Clock, 'monotonic'>, enqueue: (key: ObjectKey) => void, random: () => number = Math.random) {
    this.#clock = clock;
    this.#enqueue = enqueue;
    this.#random = random;
  }

  /** Collects the questions about one pull request, or proposal, of a repository. */
  about(repository: ObjectKey, item: ObjectKey): Asking {
    const questions = new Map<string, Question>();
    let isOutdated = false;
    const note = (question: Question) => {
      const key = `${question.id} ${question.revision}`;
      // What was known before is shown.
      if ((questions.get(key)?.answer ?? question.answer) !== question.answer) isOutdated = true;
      questions.set(key, question);
      return question.answer;
    };
    const rights: Asking['rights'] = (mayApprove) =>
      mayApprove &&
      (async (user, revision, signal) => {
        const { id, askedMs } = { id: rightId(user, revision), askedMs: this.#clock.monotonic() };
        const answer = await mayApprove(user, revision, signal);
        const ask: Question['ask'] = (end) => mayApprove(user, revision, end);
        return note({ kind: 'right', id, revision: revision.name, answer, askedMs, ask });
      });
    return {
      rights,
      knownRights: (mayApprove) => {
        const ask = rights(mayApprove);
        return (
          ask &&
          (async (user, revision, signal) => {
            const id = rightId(user, revision);
            const known =
              questions.get(`${id} ${revision.name}`) ?? this.#known(repository, { item, id, revision: revision.name });
            return known === undefined ? ask(user, revision, signal) : note(known);
          })
        );
      },
      teams: (forge) => ({
        isTeamMember: async (team, user, signal) => {
          const askedMs = this.#clock.monotonic();
          const answer = await forge.isTeamMember(team, user, signal);
          const id = JSON.stringify(['team', team, user]);
          const ask: Question['ask'] = (end) => forge.isTeamMember(team, user, end);
          return note({ kind: 'team', id, revision: '', answer, askedMs, ask });
        },
      }),
      keep: () => {
        this.#keep(repository, item, questions);
        if (isOutdated) this.#enqueue(item);
      },
    };
  }

  /** A question that the last reconciliation of this item has asked, if its answer is still known. */
  #known(
    repository: ObjectKey,
    { item, id, revision }: { readonly item: ObjectKey; readonly id: string; readonly revision: string },
  ): Question | undefined {
    const group = this.#repositories.get(keyText(repository))?.groups.get(id);
    const question = group?.questions.get(keyText(item))?.asked.get(revision);
    if (group === undefined || question === undefined) return undefined;
    const { answer, askedMs } = question;
    if (askedMs <= Math.max(this.#changedMs, group.changedMs)) return undefined;
    const isRecent = this.#clock.monotonic() - askedMs < (answer ? KNOWN_MS : REFUSAL_KNOWN_MS);
    return isRecent ? question : undefined;
  }

  #keep(repository: ObjectKey, item: ObjectKey, questions: ReadonlyMap<string, Question>): void {
    this.forget(repository, item);
    if (questions.size === 0) return;
    const id = keyText(repository);
    const known = this.#repositories.get(id) ?? { key: repository, groups: new Map(), dueMs: this.#begin() };
    for (const question of questions.values()) {
      const changedMs = Number.NEGATIVE_INFINITY;
      const group = known.groups.get(question.id) ?? { questions: new Map(), changedMs, looks: 0 };
      const own = group.questions.get(keyText(item)) ?? { item, asked: new Map<string, Question>() };
      own.asked.set(question.revision, question);
      group.questions.set(keyText(item), own);
      known.groups.set(question.id, group);
    }
    if (this.#repositories.has(id)) return;
    this.#repositories.set(id, known);
    this.#enqueue(rightsKey(repository));
  }

  /** Asks no more about one pull request or proposal, or about all of the repository. */
  forget(repository: ObjectKey, item?: ObjectKey): void {
    // Groups stay until the next look, with their place in the order: the next reconciliation may ask the same.
    const { groups } = this.#repositories.get(keyText(repository)) ?? {};
    for (const { questions } of groups?.values() ?? [])
      if (item === undefined) questions.clear();
      else questions.delete(keyText(item));
  }

  /**
   * Asks again once it is time, for the repository of such a key. Calls `wake` for what depends on another answer. Returns when to look again;
   * undefined if nothing is left.
   */
  async look(
    key: ObjectKey,
    wake: (item: ObjectKey) => void,
    signal: AbortSignal,
  ): Promise<ReconcileResult | undefined> {
    const repository = { ...key, name: key.name.slice(0, -SUFFIX.length) };
    const known = this.#repositories.get(keyText(repository));
    if (known === undefined) return undefined;
    for (const [id, { questions }] of known.groups) if (questions.size === 0) known.groups.delete(id);
    if (known.groups.size === 0) {
      this.#repositories.delete(keyText(repository));
      return undefined;
    }
    const due = KINDS.filter((kind) => known.dueMs[kind] <= this.#clock.monotonic());
    for (const kind of due) known.dueMs[kind] = this.#next();
    if (due.length > 0) await this.#ask(known, due, wake, signal);
    const nextMs = Math.min(...Object.values(known.dueMs));
    return { requeueAfter: Math.max(0, nextMs - this.#clock.monotonic()), reason: 'rights are asked again' };
  }

  /** Roles have changed: what depends on them is looked at soon. Teams do not depend on them, and keep their time. */
  hurry(): void {
    const soon = this.#clock.monotonic() + SETTLE_MS;
    this.#changedMs = soon;
    for (const known of this.#repositories.values()) {
      known.dueMs.right = Math.min(known.dueMs.right, soon);
      this.#enqueue(rightsKey(known.key));
    }
  }

  /** Hurries with each change of roles and their bindings; for processes that read these objects. */
  source(): Source<ObjectKey> {
    return {
      start: ({ informer }) => {
        const follow = <T extends KubernetesObject>(kind: Kind<T>) => informer(kind).addHandler(() => this.hurry());
        const ends = [
          ...[follow(roleKind), follow(roleBindingKind)],
          ...[follow(clusterRoleKind), follow(clusterRoleBindingKind)],
        ];
        return () => {
          for (const end of ends) end();
        };
      },
    };
  }

  async #ask(
    known: Asked,
    due: readonly QuestionKind[],
    wake: (item: ObjectKey) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const left = { right: 0, team: 0 };
    for (const kind of due) left[kind] = MOST[kind];
    for (const [id, group] of [...known.groups]) {
      const asked = [...group.questions.values()].flatMap((one) => [...one.asked.values()]);
      const question = asked[group.looks % asked.length];
      if (question === undefined || left[question.kind] === 0) continue;
      left[question.kind] -= 1;
      group.looks += 1;
      known.groups.delete(id);
      known.groups.set(id, group);
      try {
        if ((await question.ask(signal)) === question.answer) continue;
      } catch (error) {
        if (!isSluiceError(error)) throw error;
        // What cannot be asked decides nothing. Others would wait as long for a cluster or host that does not respond.
        left[question.kind] = 0;
        continue;
      }
      group.changedMs = this.#clock.monotonic();
      for (const { item } of group.questions.values()) wake(item);
    }
  }

  #begin(): Record<QuestionKind, number> {
    const nextMs = this.#next();
    return { right: nextMs, team: nextMs };
  }

  #next(): number {
    return this.#clock.monotonic() + Math.round(PAUSE_MS * (1 + MAX_JITTER * this.#random()));
  }
}

/** True for the keys of looks at rights: no object has such a name. */
export function isRightsKey({ name }: ObjectKey): boolean {
  return name.endsWith(SUFFIX);
}

/** Equal for one user in all pull requests of a repository. */
function rightId({ name, groups = [] }: Actor, { namespace }: ObjectKey): string {
  return JSON.stringify(['right', name, groups, namespace]);
}

function rightsKey(repository: ObjectKey): ObjectKey {
  return { ...repository, name: `${repository.name}${SUFFIX}` };
}
