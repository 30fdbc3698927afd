import { proposalsIn } from '../../controllers/pull-request/text/section.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { Pull } from '../support/github/github-repository.ts';
import { PACKAGES } from './actions.ts';
import type { Driver } from './driver.ts';
import { MAX_IN_MINUTE } from './gate.ts';
import { APPROVERS, METHODS, subjectOf } from './host.ts';
import { GATE } from './policies.ts';

/** In which a quiet system writes nothing. */
const QUIET_MS = 900_000;
const MAX_WINDOWS = 10;
/** Of a quiet system in that time. */
const MAX_READS = 150;
const MAX_RECONCILIATIONS = 800;

export function demand(holds: boolean, what: string, ...details: readonly unknown[]): asserts holds {
  if (!holds)
    throw new Error([what, ...details.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)))].join(' '));
}

/** Each write from shortly before where it differs from the one before it. */
function differing(writes: readonly string[]): readonly string[] {
  return writes.map((write, at) => {
    const before = writes[at - 1] ?? '';
    let same = 0;
    while (same < write.length && write[same] === before[same]) same += 1;
    return same < 40
      ? write.slice(0, 400)
      : `${write.slice(0, 40)}…${write.slice(Math.max(40, same - 60), same + 240)}`;
  });
}

/** Checks what users rely on. */
export class Invariants {
  readonly #driver: Driver;
  /** Revisions that were seen as published. */
  readonly #published = new Set<string>();
  #observedAt = 0;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** After each step: what was published since the last time, and pull requests. */
  observe(): void {
    const { driver: at } = this;
    demand(at.busiest <= MAX_IN_MINUTE, 'too many reconciliations in one minute:', at.busiest);
    const seen = new Set<string>();
    for (const { number, body } of at.host.openPulls)
      for (const proposal of proposalsIn(body ?? '')) {
        demand(!seen.has(proposal), 'two open pull requests of one proposal:', proposal, number);
        seen.add(proposal);
      }
    for (const revision of at.store.list()) {
      const isNew = revision.lifecycle === 'Published' && revision.revision > 0 && !this.#published.has(revision.name);
      if (!isNew) continue;
      this.#published.add(revision.name);
      if (revision.outOfBand === undefined) this.#checkPublished(revision);
    }
    this.#observedAt = at.ledger.now;
  }

  private get driver(): Driver {
    return this.#driver;
  }

  /** The pull request whose merge was published, if one was. */
  #mergeOf(revision: PackageRevision): Pull | undefined {
    return this.driver.host.repository.pulls.find(({ merged }) => merged?.commit === revision.commit);
  }

  /** A user has restored the branch of a published revision, and opened its pull request again: it is one of that user. */
  #isRestored({ head, events }: Pull): boolean {
    const [, path, workspace] = head.branch.split('/');
    const revision = this.driver.store
      .list()
      .find(({ key, ...one }) => one.path === path && key.workspace === workspace);
    return revision?.lifecycle === 'Published' && events.at(-1)?.event === 'reopened';
  }

  #checkPublished(revision: PackageRevision): void {
    const { host, ledger, settings, publishedOn } = this.driver;
    const { name, commit, path, key } = revision;
    const content = ledger.content(commit, path);
    const pull = this.#mergeOf(revision);
    const merge = pull === undefined ? undefined : ledger.merges.get(pull.number);
    const since = Math.min(this.#observedAt, merge?.at ?? this.#observedAt);
    const isOfUser = key.workspace.startsWith('merge-');
    if (settings.gate) {
      const kptfile = host.file(commit, `${path}/Kptfile`) ?? '';
      const isShown = new RegExp(`type: ${GATE}\\s+status: "?True`).test(kptfile);
      // A gate that opens after the host has merged the commit counts until Sluice has read the merge.
      demand(isShown || (!isOfUser && merge !== undefined), 'published without the gate:', name, kptfile);
      if (!isOfUser) demand(ledger.wasTrue(name, content, since), 'published with a gate that was not open:', name);
    }
    const needed = settings.quorum ? 2 : 1;
    const found = ledger.approversOf(path, content, since);
    const isByHost =
      merge !== undefined && !settings.quorum && !settings.forbidSelf && publishedOn.has('merge') && found.size === 0;
    demand(isByHost || found.size >= needed, `published with ${found.size} approvals:`, name, [...found]);
    const blockers = ledger.blockers(pull?.head.branch ?? `proposed/${path}/${key.workspace}`, since);
    demand(blockers.length === 0, 'published although changes were requested:', name, blockers);
    if (pull?.merged === undefined) return;
    const files = host.changedFiles(pull.merged.base, pull.merged.commit);
    const isBatch = pull.head.branch.startsWith('sluice/batch/') || isOfUser;
    const folders = isBatch ? PACKAGES : [path];
    const foreign = files.filter((file) => !folders.some((folder) => file.startsWith(`${folder}/`)));
    if (!isOfUser) demand(foreign.length === 0, 'published by a merge with other files:', name, foreign);
  }

  /** Works until nothing changes any more. */
  async settle(): Promise<void> {
    const { driver: at } = this;
    at.calm();
    for (let window = 0; window < MAX_WINDOWS; window += 1) {
      const before = this.#state();
      const [reads, count] = [at.host.reads, at.process.gate.count];
      at.host.writes = [];
      await at.process.work(QUIET_MS);
      this.observe();
      if (this.#state() !== before || at.host.writes.length > 0) continue;
      demand(at.host.reads - reads <= MAX_READS, 'too many requests of a quiet system:', at.host.reads - reads);
      const done = at.process.gate.count - count;
      demand(done <= MAX_RECONCILIATIONS, 'too many reconciliations of a quiet system:', done);
      return;
    }
    demand(false, 'it does not become quiet; the last writes:', differing(at.host.writes.slice(-6)));
  }

  #state(): string {
    return this.driver.host.refs();
  }

  /** What holds of a quiet system. */
  async check(): Promise<void> {
    const { driver: at } = this;
    demand(at.host.server.problems.length === 0, 'requests that GitHub does not describe:', at.host.server.problems);
    for (const pull of at.host.repository.pulls) if (pull.merged !== undefined) await this.#checkMerged(pull);
    for (const revision of at.store.list()) await this.#checkProposal(revision);
  }

  async #events(name: string): Promise<readonly string[]> {
    return this.driver.process.world.events(name);
  }

  async #checkMerged(pull: Pull): Promise<void> {
    const { host, store, publishedOn } = this.driver;
    const { number, merged, head } = pull;
    if (merged === undefined) return;
    const texts = [...(await this.#events('apps')), ...pull.comments.map(({ body }) => body)];
    for (const one of store.list()) texts.push(...(await this.#events(one.name)));
    const about = texts.filter((text) => text.includes(`/pull/${number}`) || text.includes(merged.commit));
    for (const folder of PACKAGES) {
      const tree = host.tree(merged.commit, folder);
      if (tree === undefined || tree === host.tree(merged.base, folder)) continue;
      const [, , workspace] = head.branch.split('/');
      const isOwn = head.branch.startsWith(`proposed/${folder}/`);
      const isOther = head.branch.startsWith('proposed/') && !isOwn;
      // What a proposal brings of other packages is reported with it.
      if (isOther) continue;
      const revisions = store.list({ package: folder }).filter(({ revision }) => revision > 0);
      const published = revisions.find((one) => host.tree(one.commit, folder) === tree);
      if (published !== undefined && published.outOfBand === undefined) continue;
      const isReported = [...about, ...pull.comments.map(({ body }) => body)].some((text) =>
        /OutOfBand|MergeNotPublished|MergedOutside|out of band|[Nn]ot published/.test(text),
      );
      const isOfUser = workspace === undefined && !head.branch.startsWith('sluice/batch/');
      if (isOfUser && publishedOn.has('approval')) continue;
      demand(
        isReported,
        'a merge was neither published nor reported:',
        number,
        folder,
        published?.name ?? 'none',
        texts,
      );
    }
  }

  async #checkProposal(revision: PackageRevision): Promise<void> {
    const { host, settings } = this.driver;
    const { name, key, path, lifecycle } = revision;
    const branch = `proposed/${path}/${key.workspace}`;
    const own = host.repository.pulls.filter((pull) => pull.head.branch === branch);
    if (lifecycle !== 'Proposed') {
      const open = own.find(({ closedAt }) => closedAt === undefined);
      if (open === undefined) return;
      demand(this.#isRestored(open), `${name} is ${lifecycle} and has an open pull request:`, open.number);
      demand(host.check(open.head.commit) !== undefined, `the head of #${open.number} has no check`);
      return;
    }
    if (settings.batch) return;
    const last = own.at(-1);
    const isOpen = own.some(({ closedAt }) => closedAt === undefined);
    const isMerged = last?.merged !== undefined;
    const events = await this.#events(name);
    const isFailing = events.some((text) => text.startsWith('PullRequestFailed'));
    demand(isOpen || isMerged || isFailing, `${name} is Proposed without an open pull request`, last?.number, events);
    const check = isOpen ? host.check(revision.commit) : undefined;
    if (isOpen && !isFailing) demand(check !== undefined, `the head of ${name} has no check`);
  }

  /** Another process finds nothing to do. */
  async checkRestart(): Promise<void> {
    const { driver: at } = this;
    const [refs, shown] = [this.#state(), at.host.shown()];
    at.host.writes = [];
    await at.restart(true);
    await at.process.work(QUIET_MS);
    this.observe();
    demand(at.host.writes.length === 0, 'a new process wrote to the host:', differing(at.host.writes.slice(0, 6)));
    demand(this.#state() === refs, 'a new process changed refs:', refs, this.#state());
    demand(at.host.shown() === shown, 'a new process changed what the host shows');
  }

  /** What has a green check is published by a merge. */
  async checkGreen(choice: number): Promise<boolean> {
    const { host, ledger, publishOn, settings } = this.driver;
    if (publishOn !== 'merge') return false;
    const green = host.openPulls.find(
      (pull) =>
        host.check(pull.head.commit)?.state === 'success' &&
        !pull.head.branch.startsWith('feature') &&
        !this.#isRestored(pull),
    );
    if (green === undefined) return false;
    const { number, head, body } = green;
    const main = host.head('main') ?? '';
    const folders = PACKAGES.filter((one) => ![undefined, host.tree(main, one)].includes(host.tree(head.commit, one)));
    const content = (folder: string) => ledger.content(head.commit, folder);
    // With a quorum, one who has not approved yet.
    const others = APPROVERS.filter((user) =>
      folders.every((one) => !ledger.approversOf(one, content(one), ledger.now).has(subjectOf(user))),
    );
    const user = (settings.quorum ? (others[0] ?? 'bob') : APPROVERS[choice % 2]) as 'bob' | 'carl';
    const method = METHODS[choice % METHODS.length] ?? 'merge';
    ledger.now += 1;
    const published = () =>
      this.driver.store.list().filter(({ lifecycle, revision }) => lifecycle === 'Published' && revision > 0);
    const before = new Set(published().map(({ name }) => name));
    const proposed = this.driver.store.list({ lifecycle: 'Proposed' }).map(({ name }) => name);
    if (!host.perform(user, 'PUT', `/pulls/${number}/merge`, { merge_method: method })) return false;
    ledger.merges.set(number, { at: ledger.now, user, head: head.commit });
    ledger.approve('merge', user, head.commit, number);
    await this.driver.process.work(120_000);
    this.observe();
    const now = published().filter(({ name }) => !before.has(name));
    const members = proposalsIn(body ?? '').length;
    const bad = now.filter(({ outOfBand }) => outOfBand !== undefined);
    demand(
      now.length >= members && bad.length === 0,
      `#${number} was green, and its ${method} by ${user} published ${now.length} of ${members}:`,
      proposed,
      bad.map(({ name, outOfBand }) => [name, outOfBand]),
      green.comments.map((one) => one.body),
      await this.#events('apps'),
    );
    return true;
  }
}
