import type { KptfileErrorCode } from '../model/kptfile-error.ts';
import type { SourceText } from '../yaml/source-text.ts';
import type { MappingNode, YamlNode } from '../yaml/yaml-tree.ts';

/** What lintKptfile can find, next to the codes of unreadable files. */
export type LintCode =
  | KptfileErrorCode
  | 'ConditionNameDot'
  | 'ConditionStatus'
  | 'ConditionWithoutType'
  | 'ConfigPath'
  | 'DuplicateCondition'
  | 'DuplicateGate'
  | 'FunctionConfig'
  | 'FunctionSource'
  | 'GateWithoutCondition'
  | 'GateWithoutType'
  | 'Image'
  | 'Inventory'
  | 'MissingName'
  | 'NewerField'
  | 'NotText'
  | 'UnknownField'
  | 'UpdateStrategy';

export interface LintFinding {
  /** kpt rejects errors too; it accepts warnings, which cause problems later. */
  readonly severity: 'error' | 'warning';
  readonly code: LintCode;
  readonly message: string;
  /** Both count from 1. */
  readonly line: number;
  readonly column: number;
  /** As in `pipeline.mutators[0].image`; empty for the whole file. */
  readonly path: string;
}

export type Step = string | number;

/** Collects findings at paths of a tree. */
export class LintReport {
  readonly findings: LintFinding[] = [];
  readonly #root: MappingNode;
  readonly #source: SourceText;

  constructor(root: MappingNode, source: SourceText) {
    this.#root = root;
    this.#source = source;
  }

  error(code: LintCode, steps: readonly Step[], message: string): void {
    this.#add('error', code, steps, message);
  }

  warning(code: LintCode, steps: readonly Step[], message: string): void {
    this.#add('warning', code, steps, message);
  }

  #add(severity: LintFinding['severity'], code: LintCode, steps: readonly Step[], message: string): void {
    const position = this.#source.position(this.#offsetOf(steps));
    this.findings.push({ severity, code, message, ...position, path: pathText(steps) });
  }

  /** The position of the path, or of the nearest part of it that the file has. */
  #offsetOf(steps: readonly Step[]): number {
    let node: YamlNode = this.#root;
    let offset = node.start;
    for (const step of steps) {
      if (node.kind === 'mapping') {
        const entry = node.entries.get(String(step));
        if (entry === undefined) break;
        offset = entry.key.start;
        node = entry.value;
      } else if (node.kind === 'sequence') {
        const item: YamlNode | undefined = node.items[Number(step)];
        if (item === undefined) break;
        offset = item.start;
        node = item;
      } else break;
    }
    return offset;
  }
}

function pathText(steps: readonly Step[]): string {
  let text = '';
  for (const step of steps) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z][\w-]*$/.test(step)) text += text === '' ? step : `.${step}`;
    else text += `[${JSON.stringify(step)}]`;
  }
  return text;
}
