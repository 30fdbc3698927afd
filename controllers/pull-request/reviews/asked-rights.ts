import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { Source } from '../../../src/controller/source.ts';
import type { Forge } from '../../../src/forge/forge.ts';
import { isSluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import { clusterRoleKind, roleKind } from '../../../src/resource/kinds/rbac/role.ts';
import { clusterRoleBindingKind, roleBindingKind } from '../../../src/resource/kinds/rbac/role-binding.ts';
import { type KubernetesObject, keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import type { Kind } from '../../../src/resource/schema/kind.ts';
import type { MayApprove } from '../rights.ts';

/** Until the rights, or teams, of one repository are asked for again; up to a fifth is waited longer, so that many do not ask at once. */
const PAUSE_MS = 300_000;
const MAX_JITTER = 0.2;
/** After a change of roles that this process sees: what answers may see it a moment later, and many changes come together. */
const SETTLE_MS = 1000;
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
  readonly answer: boolean;
  ask(signal: AbortSignal): Promise<boolean>;
}

interface Group {
  /** By what has asked it: the questions are for different revisions. */
  readonly questions: Map<string, Question & { readonly item: ObjectKey }>;
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

  /** `enqueue` gets the keys for `look` into the work queue. */
  constructor(clock: Pick<Clock, 'monotonic'>, enqueue: (key: ObjectKey) => void, random: () => number = Math.random) {
    this.#clock = clock;
    this.#enqueue = enqueue;
    this.#random = random;
  }

  /** Collects the questions about one pull request, or proposal, of a repository. */
  about(repository: ObjectKey, item: ObjectKey): Asking {
    const questions = new Map<string, Question>();
    const note = (question: Question) => questions.set(question.id, question);
    return {
      rights: (mayApprove) =>
        mayApprove &&
        (async (user, revision, signal) => {
          const answer = await mayApprove(user, revision, signal);
          const id = JSON.stringify(['right', user.name, user.groups ?? [], revision.namespace]);
          note({ kind: 'right', id, answer, ask: (end) => mayApprove(user, revision, end) });
          return answer;
        }),
      teams: (forge) => ({
        isTeamMember: async (team, user, signal) => {
          const answer = await forge.isTeamMember(team, user, signal);
          const id = JSON.stringify(['team', team, user]);
          note({ kind: 'team', id, answer, ask: (end) => forge.isTeamMember(team, user, end) });
          return answer;
        },
      }),
      keep: () => this.#keep(repository, item, questions),
    };
  }

  #keep(repository: ObjectKey, item: ObjectKey, questions: ReadonlyMap<string, Question>): void {
    this.forget(repository, item);
    if (questions.size === 0) return;
    const id = keyText(repository);
    const known = this.#repositories.get(id) ?? { key: repository, groups: new Map(), dueMs: this.#begin() };
    for (const question of questions.values()) {
      const group = known.groups.get(question.id) ?? { questions: new Map(), looks: 0 };
      group.questions.set(keyText(item), { ...question, item });
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
      const asked = [...group.questions.values()];
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

function rightsKey(repository: ObjectKey): ObjectKey {
  return { ...repository, name: `${repository.name}${SUFFIX}` };
}
