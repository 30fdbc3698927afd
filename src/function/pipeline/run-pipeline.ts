import { posix } from 'node:path';
import type { KptFunction } from '../../../kptfile-schema/index.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Catalog, ResolvedFunction } from '../catalog/catalog.ts';
import { parseImageName, withRegistry } from '../catalog/image-name.ts';
import type { PipelineEvent, PipelineInput, PipelineOutcome, PipelineStep } from '../model/pipeline.ts';
import { readResources } from '../resource/read-resources.ts';
import type { Resource } from '../resource/resource.ts';
import { isSelective, mergeSelection, selectResources } from '../resource/selection.ts';
import { readWhen } from '../resource/when.ts';
import { writeResources } from '../resource/write-resources.ts';
import { acceptOutput, type Place, placesOf } from './accept-output.ts';
import { ApprovalRequests } from './approval-requests.ts';
import { entryProblem } from './check-entry.ts';
import { functionConfig, requestedCondition } from './function-config.ts';
import { type Members, PackageMembers } from './package-members.ts';
import { type PackageTree, type PipelinePackage, readPackages, singlePackage } from './packages.ts';
import { isPinned } from './pinned-validator.ts';
import { failureText, type PipelineEntry, stepOf } from './pipeline-step.ts';
import { type FunctionRun, type RunContext, runFunction } from './run-function.ts';

export interface PipelineOptions extends Omit<RunContext, 'byHand'> {
  readonly catalog: Catalog;
  readonly onEvent?: ((event: PipelineEvent) => void) | undefined;
}

/**
 * Renders a package as kpt does: the functions of nested packages first, in the order of their paths (or last, with the annotation
 * `kpt.dev/bfs-rendering`), then those of the package around them, which get the results of all; mutators in their order, then
 * validators, which change nothing. The first failing function ends the pipeline. A function sees files by paths relative to its
 * package. Any problem of the package is the failure of the outcome; rejects with the signal's reason only.
 */
export async function runPipeline(input: PipelineInput, options: PipelineOptions): Promise<PipelineOutcome> {
  let run: PipelineRun;
  try {
    run = new PipelineRun(input, options);
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    return { edits: new Map(), steps: [], failure: error.message, notes: [] };
  }
  return run.run();
}

/** Maximum number of notes about one function. */
const MAX_REPEATED_NOTES = 5;

class PipelineRun {
  readonly #input: PipelineInput;
  readonly #options: PipelineOptions;
  readonly #tree: PackageTree;
  readonly #before: ReturnType<typeof readResources>;
  readonly #members: PackageMembers;
  readonly #steps: PipelineStep[] = [];
  readonly #notes: string[];
  readonly #requests: ApprovalRequests;

  constructor(input: PipelineInput, options: PipelineOptions) {
    this.#input = input;
    this.#options = options;
    this.#tree = input.only === undefined ? readPackages(input.files) : singlePackage(input.only);
    const runsNothing = this.#tree.runs.every((each) => entriesOf(each, undefined).length === 0);
    this.#before = readResources(runsNothing ? new Map() : input.files);
    this.#notes = [...this.#before.notes];
    this.#members = new PackageMembers(this.#tree.parentsFirst, this.#before.resources);
    this.#requests = new ApprovalRequests(this.#before.resources);
  }

  async run(): Promise<PipelineOutcome> {
    const failure = (await this.#checkEntries()) ?? (await this.#runPackages());
    const kept = failure === undefined || this.#tree.savesOnFailure;
    const outcome = { steps: this.#steps, notes: this.#notes };
    try {
      // By hand, a user runs the function on purpose.
      const ignored = kept && !this.#byHand ? this.#requests.restore(this.#members.all) : [];
      this.#notes.push(...ignored);
      const edits = kept ? writeResources(this.#before, this.#members.all) : new Map<string, string | null>();
      return {
        ...outcome,
        edits,
        ...(ignored.length === 0 ? {} : { ignored }),
        ...(failure === undefined ? {} : { failure }),
      };
    } catch (error) {
      if (!isSluiceError(error, 'InvalidInput')) throw error;
      return { ...outcome, edits: new Map(), failure: failure ?? error.message };
    }
  }

  /** No function runs if one entry is invalid. */
  #checkEntries(): Promise<string | undefined> {
    return this.#forEachPackage(async (entries, members) => {
      const own = members.own();
      for (const entry of entries) {
        const problem = await entryProblem(entry.fn, own);
        if (problem === undefined) continue;
        this.#steps.push(stepOf(entry, { results: [], exitCode: 1, stderr: problem }));
        return this.#about(entry, problem);
      }
      return undefined;
    });
  }

  #runPackages(): Promise<string | undefined> {
    return this.#forEachPackage(async (entries, members) => {
      for (const entry of entries) {
        const failure = await this.#runEntry(entry, members);
        if (failure !== undefined) return failure;
      }
      return undefined;
    });
  }

  /** Visits the packages that name functions, in the order in which they run, up to the first failure. */
  async #forEachPackage(
    visit: (entries: readonly PipelineEntry[], members: Members) => Promise<string | undefined>,
  ): Promise<string | undefined> {
    for (const each of this.#tree.runs) {
      const entries = entriesOf(each, this.#input.registry);
      if (entries.length === 0) continue;
      const failure = await this.#members.within(each, (members) => visit(entries, members));
      if (failure !== undefined) return failure;
    }
    return undefined;
  }

  /** Returns why the pipeline ends with this entry; undefined if it continues. */
  async #runEntry(entry: PipelineEntry, members: Members): Promise<string | undefined> {
    const { catalog, onEvent, signal } = this.#options;
    signal.throwIfAborted();
    const { list, fn } = entry;
    const all = members.items;
    const selected = isSelective(fn) ? selectResources(fn, all) : all;
    const chosen = isSelective(fn) ? { selected: selected.length } : {};
    onEvent?.({ type: 'started', step: stepOf(entry, undefined), ...chosen });
    const resolved = catalog.resolve(fn, this.#input.rules);
    const requested: { conditionType?: string; pinned?: boolean } = {};
    let run: FunctionRun;
    try {
      const config = this.#config(entry, members);
      if (list === 'validators') {
        const type = requestedCondition(config) ?? this.#requiredCondition(fn);
        if (type !== undefined) requested.conditionType = type;
        const { pinnedValidators = [], registry } = this.#input;
        const pins = pinnedValidators.filter(({ conditionType }) => conditionType === type);
        if (pins.some((rule) => isPinned(withRegistry(rule, registry), entry, config))) requested.pinned = true;
      }
      run = (await this.#isSkipped(fn, selected))
        ? { results: [{ severity: 'info', message: 'skipped: its condition `when` is false' }], exitCode: 0 }
        : await this.#runFunction(entry, resolved, { members, selected, config });
    } catch (error) {
      if (!isSluiceError(error, 'InvalidInput') && !isSluiceError(error, 'LimitExceeded')) throw error;
      run = { results: [], exitCode: 1, stderr: error.message };
    }
    const step = { ...stepOf(entry, run), ...requested };
    this.#steps.push(step);
    onEvent?.({ type: 'finished', step });
    if (run.exitCode === 0 || requested.conditionType !== undefined) return undefined;
    return this.#about(entry, failureText(step.result));
  }

  async #runFunction(
    entry: PipelineEntry,
    resolved: ResolvedFunction,
    { members, selected, config }: { members: Members; selected: readonly Resource[]; config: Resource | undefined },
  ): Promise<FunctionRun> {
    const all = members.items;
    const isMutator = entry.list === 'mutators';
    // Functions in this process change their input.
    const items = isMutator || resolved.type !== 'builtIn' ? selected : selected.map((resource) => resource.clone());
    const saved = isMutator && this.#tree.savesOnFailure ? all.map((resource) => resource.clone()) : all;
    const before = placesOf(all);
    let run = await runFunction(resolved, { items: [...items], config }, { ...this.#options, byHand: this.#byHand });
    if (run.items !== undefined && isMutator) {
      const output = mergeSelection(all, selected, run.items);
      const problem = this.#accept(entry, output, before);
      if (problem === undefined) members.items = output;
      else run = { results: run.results, exitCode: 1, stderr: problem };
    }
    if (run.items === undefined) members.items = saved;
    return run;
  }

  /** Returns why the output of a mutator is rejected; undefined if it is accepted. */
  #accept(entry: PipelineEntry, output: readonly Resource[], before: readonly Place[]): string | undefined {
    const keepsKptfiles = !this.#byHand;
    try {
      const repeated = acceptOutput(output, { before, keepsKptfiles, limits: this.#options.limits });
      for (const resource of repeated.slice(0, MAX_REPEATED_NOTES))
        this.#notes.push(this.#about(entry, `it created ${resource.describe()}, and the package has one already`));
      return undefined;
    } catch (error) {
      if (isSluiceError(error, 'InvalidInput') || isSluiceError(error, 'LimitExceeded')) return error.message;
      throw error;
    }
  }

  get #byHand(): boolean {
    return this.#input.only !== undefined;
  }

  #config({ of, fn }: PipelineEntry, members: Members): Resource | undefined {
    const { files, only } = this.#input;
    if (only?.config !== undefined) return readResources(new Map([['config.yaml', only.config]])).resources[0];
    return functionConfig(fn, {
      now: () => members.own(),
      before: (path) => files.get(posix.join(of.path, path)),
    });
  }

  async #isSkipped({ when = '' }: KptFunction, selected: readonly Resource[]): Promise<boolean> {
    if (when === '') return false;
    return !(await readWhen(when)).test({ resources: selected.map(({ value }) => value) });
  }

  /** The condition type that a policy requires. */
  #requiredCondition({ name, image, exec }: KptFunction): string | undefined {
    const { validatorConditions } = this.#input;
    const short = image === undefined ? posix.basename(exec?.trim().split(/\s/)[0] ?? '') : parseImageName(image).name;
    return (name === undefined ? undefined : validatorConditions.get(name)) ?? validatorConditions.get(short);
  }

  #about({ of, list, at, fn }: PipelineEntry, why: string): string {
    const name = JSON.stringify(fn.name ?? fn.image ?? fn.exec ?? '');
    if (this.#input.only !== undefined) return `function ${name}: ${why}`;
    return `${of.kptfilePath}: pipeline.${list}[${at}], function ${name}: ${why}`;
  }
}

function entriesOf(of: PipelinePackage, registry: string | undefined): PipelineEntry[] {
  return (['mutators', 'validators'] as const).flatMap((list) =>
    (of.pipeline[list] ?? []).map((fn, at) => ({ of, list, at, fn: withRegistry(fn, registry) })),
  );
}
