import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { Renderer } from '../../src/package/plan/ports/renderer.ts';
import type { RevisionSource } from '../../src/package/upstream/revision-source.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { ANNA, keptData } from '../support/fixture.ts';
import type { Fault, GitHubRequest } from '../support/github/github-server.ts';
import { newServerTrust } from '../support/trust.ts';
import type { Action, HostAction, Of, Settings, Step } from './actions.ts';
import { APPROVERS, Host, MAPPED, subjectOf } from './host.ts';
import { Ledger } from './ledger.ts';
import { createPolicy, GATE, setAccess, setPublishOn } from './policies.ts';
import { type ProcessOptions, SluiceProcess } from './process.ts';

const BERTA: RequestContext = { ...ANNA, actor: { name: 'berta' } };
const WORK_MS = { 'at once': 0, soon: 1500, later: 45_000 } as const;

/** A world in which steps are taken. */
export class Driver {
  readonly clock: ManualClock;
  readonly host: Host;
  readonly ledger: Ledger;
  readonly settings: Settings;
  readonly #options: ProcessOptions;
  readonly #folder: string;
  process: SluiceProcess;
  publishOn: Settings['publishOn'];
  /** All values that it had. */
  readonly publishedOn = new Set<string>();
  /** What happens before the next requests of Sluice, but so many. */
  #pending: {
    after: number;
    readonly run: (request: GitHubRequest) => { readonly fault?: Fault; readonly isLast: boolean };
  }[] = [];
  #texts = 0;
  #busiest = 0;

  private constructor(settings: Settings, host: Host, options: ProcessOptions, process: SluiceProcess) {
    this.settings = settings;
    this.host = host;
    this.clock = host.clock;
    this.ledger = new Ledger(host);
    this.#options = options;
    this.#folder = options.kept.folder;
    this.process = process;
    this.publishOn = settings.publishOn;
  }

  static async open(settings: Settings, renderer: Renderer): Promise<Driver> {
    const clock = new ManualClock();
    const host = await Host.open(clock);
    const folder = mkdtempSync(join(tmpdir(), 'sluice-pulls-'));
    const options: ProcessOptions = {
      ...{ clock, trust: newServerTrust(), kept: keptData(clock, folder), path: host.path, renderer },
      refusesPushes: settings.refusesPushes,
      openForge: () => host.openForge(),
      mayApprove: (subject) => APPROVERS.some((user) => subjectOf(user) === subject),
    };
    if (settings.requiresCheck) host.repository.protections.set('main', { check: 'sluice/ready', exemptsOwner: true });
    const process = await SluiceProcess.start(options);
    const driver = new Driver(settings, host, options, process);
    host.onRequest = (request) => driver.#beforeRequest(request);
    await driver.#createPolicy();
    return driver;
  }

  async close(): Promise<void> {
    this.host.onRequest = () => undefined;
    await this.process.stop();
    await this.host.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get store() {
    return this.process.world.store;
  }

  /** The most reconciliations in one minute of the model, of all processes. */
  get busiest(): number {
    return Math.max(this.#busiest, this.process.gate.busiest);
  }

  async take({ action, works }: Step): Promise<void> {
    this.ledger.now += 1;
    await this.#act(action);
    if (works !== 'at once' || action.do === 'kill') await this.process.work(WORK_MS[works]);
    if (action.do === 'kill') await this.restart();
  }

  /** Another process in place of this one. */
  async restart(losesCaches = false): Promise<void> {
    this.#pending = [];
    this.#busiest = this.busiest;
    await this.process.stop();
    if (losesCaches) rmSync(join(this.#folder, 'data'), { recursive: true, force: true });
    this.process = await SluiceProcess.start(this.#options);
  }

  /** Nothing fails any more, and no user acts. */
  calm(): void {
    this.#pending = [];
  }

  #beforeRequest(request: GitHubRequest): Fault | undefined {
    let fault: Fault | undefined;
    for (const one of [...this.#pending]) {
      if (one.after > 0) {
        one.after -= 1;
        continue;
      }
      const result = one.run(request);
      fault ??= result.fault;
      if (result.isLast) this.#pending = this.#pending.filter((other) => other !== one);
    }
    return fault;
  }

  async #createPolicy(): Promise<void> {
    const { settings } = this;
    await createPolicy(this.process.world.client, settings, this.host.server.api);
    this.publishedOn.add(settings.publishOn);
    await this.process.work(5000);
  }

  async #act(action: Action): Promise<void> {
    switch (action.do) {
      case 'propose':
        return this.#try(() => this.#propose(action.of));
      case 'delete':
        return this.#try(() => this.store.update(nameOf(action.of), { action: 'delete' }, ANNA));
      case 'withdraw':
        return this.#try(() => this.store.update(nameOf(action.of), { action: 'reject' }, BERTA));
      case 'gate':
        return this.#try(async () => {
          const name = nameOf(action.of);
          const { commit, path, lifecycle } = this.store.get(name);
          if (lifecycle !== 'Draft' && lifecycle !== 'Proposed') return;
          const after = await this.store.change(name, { conditions: [{ type: GATE, status: action.status }] }, ANNA);
          this.ledger.gate(name, this.ledger.content(commit, path), action.status);
          this.ledger.gate(name, this.ledger.content(after.commit, path), action.status);
        });
      case 'approve':
        return this.#try(async () => {
          const name = nameOf(action.of);
          const { commit } = this.store.get(name);
          const how = { actor: { name: subjectOf(action.user) }, face: 'api' } as const;
          // The API would refuse users without the right.
          if (!APPROVERS.includes(action.user)) return;
          this.ledger.approve('request', action.user, commit);
          await this.store.update(name, { action: 'approve', expectedCommit: commit }, how);
        });
      case 'reject':
        return this.#try(() =>
          this.store.update(
            nameOf(action.of),
            { action: 'reject' },
            {
              actor: { name: subjectOf(action.user) },
              face: 'api',
            },
          ),
        );
      case 'policy':
        return this.#setPublishOn(action.publishOn);
      case 'access':
        return setAccess(this.process.world.client, action);
      case 'restart':
        return this.restart(action.losesCaches);
      case 'kill':
        this.#pending.push({
          after: action.after,
          run: () => {
            const { process } = this;
            if (process.isKilled) return { fault: 'cut', isLast: false };
            process.isKilled = true;
            return { fault: action.hasEffect ? { status: 502, body: '{}', afterEffect: true } : 'cut', isLast: false };
          },
        });
        return;
      case 'fail': {
        let left = action.count;
        this.#pending.push({
          after: action.after,
          run: () => {
            left -= 1;
            const fault = { status: 500, body: '{"message":"Server Error"}', afterEffect: action.hasEffect };
            return { fault, isLast: left === 0 };
          },
        });
        return;
      }
      case 'race':
        this.#pending.push({
          after: action.after,
          run: () => {
            this.#onHost(action.action);
            return { isLast: true };
          },
        });
        return;
      case 'wait':
        return this.process.work(action.seconds * 1000);
      default:
        this.#onHost(action);
    }
  }

  #onHost(action: HostAction): void {
    const { host, ledger } = this;
    host.repository.follow();
    switch (action.do) {
      case 'push':
        this.#push(action.of, action.what);
        return;
      case 'remove-branch':
        host.deleteBranch(branchOf(action.of));
        return;
      case 'edit-main': {
        const file = action.what === 'other' ? 'notes.txt' : `${action.what}/main.yaml`;
        // A package that is not there would be a new one.
        if (action.what !== 'other' && host.tree(host.head('main') ?? '', action.what) === undefined) return;
        host.push('main', { [file]: this.#text() });
        return;
      }
      case 'user-pull': {
        const branch = `feature-${action.branch}`;
        host.push(branch, {
          [`${action.package}/a.yaml`]: resource(action.package, this.#text()),
          [`${action.package}/Kptfile`]: kptfile(action.package, action.isTested ? this.#text() : undefined),
        });
        host.perform(action.user, 'POST', '/pulls', { head: branch, base: 'main', title: 'A change' });
        return;
      }
      default:
    }
    const { pulls } = host.repository;
    const isReopened = action.do === 'reopen';
    const some = isReopened
      ? pulls.filter(({ closedAt, merged }) => closedAt !== undefined && merged === undefined)
      : host.openPulls;
    const pull = some[action.pull % Math.max(1, some.length)];
    if (pull === undefined) return;
    const { number } = pull;
    const { branch, commit } = pull.head;
    switch (action.do) {
      case 'review': {
        const body = { event: action.verdict, body: 'a review' };
        if (host.perform(action.user, 'POST', `/pulls/${number}/reviews`, body))
          ledger.review(action.user, branch, commit, action.verdict, number);
        return;
      }
      case 'dismiss': {
        const review = pull.reviews.findLast((one) => one.user === action.user && one.state !== 'DISMISSED');
        if (review === undefined) return;
        host.perform('acme', 'PUT', `/pulls/${number}/reviews/${review.id}/dismissals`, { message: 'outdated' });
        ledger.dismiss(action.user, branch, number);
        return;
      }
      case 'comment':
        host.perform(action.user, 'POST', `/issues/${number}/comments`, { body: action.text });
        if (action.text.startsWith('/sluice approve')) ledger.approve('comment', action.user, commit, number);
        if (action.text.includes('True') && MAPPED.includes(action.user))
          for (const { name, path } of this.store.list({ lifecycle: 'Proposed' }))
            ledger.gate(name, ledger.content(commit, path), 'True');
        return;
      case 'merge': {
        const method = { merge_method: action.method };
        if (!host.perform(action.user, 'PUT', `/pulls/${number}/merge`, method)) return;
        ledger.merges.set(number, { at: ledger.now, user: action.user, head: commit });
        ledger.approve('merge', action.user, commit, number);
        if (action.deletes) host.deleteBranch(branch);
        return;
      }
      case 'close':
        host.perform(action.user, 'PATCH', `/pulls/${number}`, { state: 'closed' });
        return;
      case 'reopen':
        if (action.restores) host.restoreBranch(branch, commit);
        host.perform(action.user, 'PATCH', `/pulls/${number}`, { state: 'open' });
        return;
      default:
    }
  }

  #push(of: Of, what: (HostAction & { readonly do: 'push' })['what']): void {
    const { host } = this;
    const branch = [branchOf(of), `drafts/${of.package}/${of.workspace}`].find((one) => host.head(one) !== undefined);
    if (branch === undefined) return;
    const head = host.head(branch) ?? '';
    if (what === 'main') host.mergeMain(branch);
    else if (what === 'package') host.push(branch, { [`${of.package}/b.yaml`]: resource('b', this.#text()) });
    else if (what === 'other') {
      const other = of.package === 'app' ? 'web' : 'app';
      host.push(branch, {
        [`${other}/Kptfile`]: host.file(head, `${other}/Kptfile`) ?? kptfile(other, undefined),
        [`${other}/c.yaml`]: resource('c', this.#text()),
      });
    } else if (what === 'foreign') host.push(branch, { 'foreign.txt': this.#text() });
    else host.push(branch, { 'foreign.txt': null, [`${of.package}/b.yaml`]: null });
  }

  async #propose(of: Of): Promise<void> {
    const { store } = this;
    const name = nameOf(of);
    const found = store.find(name);
    const text = Buffer.from(resource('a', this.#text()));
    if (found === undefined) {
      const [latest] = store
        .list({ package: of.package })
        .filter(({ lifecycle, revision }) => lifecycle === 'Published' && revision > 0)
        .sort((a, b) => b.revision - a.revision);
      const source: RevisionSource =
        latest === undefined
          ? { type: 'init', files: new Map([['a.yaml', text]]) }
          : { type: 'copy', source: latest.name };
      await store.create('apps', { ...of, source }, ANNA);
      if (latest !== undefined) await store.change(name, { files: new Map([['a.yaml', text]]) }, ANNA);
    } else if (found.lifecycle === 'Proposed') {
      await store.change(name, { files: new Map([['a.yaml', text]]) }, ANNA);
      return;
    }
    await store.update(name, { action: 'propose' }, BERTA);
  }

  async #setPublishOn(publishOn: Settings['publishOn']): Promise<void> {
    await setPublishOn(this.process.world.client, publishOn);
    this.publishOn = publishOn;
    this.publishedOn.add(publishOn);
  }

  /** What Sluice refuses, it refuses. */
  async #try(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!isSluiceError(error) || error.code === 'Internal') throw error;
    }
  }

  #text(): string {
    this.#texts += 1;
    return `text ${this.#texts}`;
  }
}

export function nameOf(of: Of): string {
  return `apps.${of.package}.${of.workspace}`;
}

export function branchOf(of: Of): string {
  return `proposed/${of.package}/${of.workspace}`;
}

function resource(name: string, text: string): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  text: ${text}\n`;
}

function kptfile(name: string, tested: string | undefined): string {
  const head = `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: ${name}\n`;
  if (tested === undefined) return head;
  return `${head}status:\n  conditions:\n    - type: ${GATE}\n      status: "True"\n      reason: Tested\n      message: ${tested}\n`;
}
