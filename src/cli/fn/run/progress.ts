import type { ResultItem } from '../../../../kptfile-schema/index.ts';
import type { PipelineEvent, PipelineStep } from '../../../function/model/pipeline.ts';
import { printable } from '../../output/printable.ts';
import type { Terminal } from '../../output/terminal.ts';

const MAX_LINES = 4;

export interface ProgressOptions {
  /** Show the first findings of a function only. */
  readonly truncate: boolean;
  /** Returns milliseconds, from which the duration of a function is computed. */
  readonly now: () => number;
}

/** Reports the progress of a pipeline on stderr, in the format of kpt. */
export class Progress {
  readonly #terminal: Terminal;
  readonly #options: ProgressOptions;
  #began = 0;
  #inPackage = false;

  constructor(terminal: Terminal, options: ProgressOptions) {
    this.#terminal = terminal;
    this.#options = options;
  }

  /** The functions of a package follow; `name` begins with that of the root package. */
  package(name: string): void {
    this.end();
    this.#inPackage = true;
    this.#terminal.note(`Package ${quoted(name)}:`);
  }

  /** The functions of the last package are complete. */
  end(): void {
    if (this.#inPackage) this.#terminal.note('');
    this.#inPackage = false;
  }

  running({ step, selected }: Pick<PipelineEvent, 'step' | 'selected'>): void {
    this.#began = this.#options.now();
    const on = selected === undefined ? '' : ` on ${selected} resource(s)`;
    this.#terminal.note(`[RUNNING] ${quoted(nameOf(step.result))}${on}`);
  }

  /** The function that began last has ended. */
  done({ result, conditionType }: PipelineStep): void {
    const { err } = this.#terminal;
    const failed = result.executionError !== undefined || (result.exitCode ?? 0) !== 0;
    const label = failed ? this.#terminal.style('red', '[FAIL]', err) : this.#terminal.style('green', '[PASS]', err);
    const took = duration(this.#options.now() - this.#began);
    this.#terminal.note(`${label} ${quoted(nameOf(result))} in ${took}`);
    this.#block('Results', (result.results ?? result.errorResults ?? []).map(findingLine));
    const stderr = (result.stderr ?? '').trimEnd();
    this.#block('Stderr', stderr === '' ? [] : stderr.split('\n').map((line) => JSON.stringify(line)));
    if (failed) this.#terminal.note(`  Exit code: ${result.exitCode || 1}`);
    if (failed && conditionType !== undefined)
      this.#terminal.note(`  Condition ${quoted(conditionType)} records it; the pipeline continues`);
  }

  #block(title: string, lines: readonly string[]): void {
    if (lines.length === 0) return;
    const shown = this.#options.truncate ? lines.slice(0, MAX_LINES) : lines;
    this.#terminal.note(`  ${title}:`);
    for (const line of shown) this.#terminal.note(`    ${printable(line.replaceAll('\n', ' '))}`);
    const left = lines.length - shown.length;
    if (left > 0) this.#terminal.note(`    ...(${left} line(s) truncated, use '--truncate-output=false' to disable)`);
  }
}

/** `[error] apps/v1/Deployment/default/web spec.replicas: too many`, as kpt writes findings. */
function findingLine({ severity = 'info', resourceRef, field, message = '' }: ResultItem): string {
  const { apiVersion, kind, namespace, name } = resourceRef ?? {};
  const identity = [apiVersion, kind, namespace, name].filter((part) => part !== undefined && part !== '').join('/');
  const path = field?.path ?? '';
  return `[${severity}]${identity === '' ? '' : ` ${identity}`}${path === '' ? '' : ` ${path}`}: ${message}`;
}

function nameOf({ image, exec, name }: PipelineStep['result']): string {
  return image ?? exec ?? name ?? '';
}

function quoted(text: string): string {
  return printable(JSON.stringify(text));
}

function duration(milliseconds: number): string {
  const whole = Math.max(0, Math.round(milliseconds));
  return whole < 1000 ? `${whole}ms` : `${(whole / 1000).toFixed(1)}s`;
}
