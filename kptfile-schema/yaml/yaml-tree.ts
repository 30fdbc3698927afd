import { EVENT_ID, getScalarValue, parseEvents, SCALAR_STYLE, type ScalarEvent, YAMLException } from 'js-yaml';
import { type KptfileError, type KptfileErrorCode, KptfileReadFailure } from '../model/kptfile-error.ts';
import { SourceText } from './source-text.ts';

export type ScalarForm = 'absent' | 'plain' | 'single' | 'double' | 'literal' | 'folded';

/** A scalar. `start` and `end` include quotes; of a block scalar they span the body, without its header. */
export interface ScalarNode {
  readonly kind: 'scalar';
  readonly start: number;
  readonly end: number;
  readonly form: ScalarForm;
  /** The explicit tag as written, such as `!!str`. */
  readonly tag: string | undefined;
  readonly tagStart: number;
  /** The text of the scalar, decoded but not resolved: `1` and `"1"` are both the text 1. */
  readonly text: string;
}

export interface Entry {
  readonly key: ScalarNode;
  readonly value: YamlNode;
}

/** A mapping. `start` is its first key or its brace. */
export interface MappingNode {
  readonly kind: 'mapping';
  readonly start: number;
  readonly flow: boolean;
  readonly tagStart: number;
  readonly entries: Map<string, Entry>;
}

/** A sequence. `start` is its first dash or its bracket. */
export interface SequenceNode {
  readonly kind: 'sequence';
  readonly start: number;
  readonly flow: boolean;
  readonly tagStart: number;
  readonly items: YamlNode[];
}

export type YamlNode = ScalarNode | MappingNode | SequenceNode;

export interface YamlTree {
  readonly source: SourceText;
  /** Undefined if the text holds no content. */
  readonly root: YamlNode | undefined;
  /** Values and field names, those inside of others included. */
  readonly values: number;
}

const MAX_DEPTH = 100;
const FORMS = {
  [SCALAR_STYLE.PLAIN]: 'plain',
  [SCALAR_STYLE.SINGLE_QUOTED]: 'single',
  [SCALAR_STYLE.DOUBLE_QUOTED]: 'double',
  [SCALAR_STYLE.LITERAL_BLOCK]: 'literal',
  [SCALAR_STYLE.FOLDED_BLOCK]: 'folded',
} as const satisfies Record<number, ScalarForm>;

/**
 * Parses one YAML document into nodes with their offsets in the text, from js-yaml's event stream.
 * Nothing is expanded: anchors, aliases and merge keys are refused at their first occurrence.
 * Throws KptfileReadFailure.
 */
export function parseYamlTree(text: string): YamlTree {
  const source = new SourceText(text);
  let events: ReturnType<typeof parseEvents>;
  try {
    events = parseEvents(text, { maxDepth: MAX_DEPTH });
  } catch (error) {
    if (error instanceof YAMLException) throw new KptfileReadFailure(syntaxError(source, error));
    throw error;
  }
  const builder = new TreeBuilder(source);
  return { source, root: builder.build(events), values: builder.values };
}

/** Reports a failure at an offset of the text. */
export function failAt(
  source: SourceText,
  offset: number,
  code: KptfileErrorCode,
  message: string,
  path?: string,
): never {
  const place = source.position(offset);
  throw new KptfileReadFailure({ code, message, ...place, ...(path === undefined ? {} : { path }) });
}

interface Frame {
  readonly node: MappingNode | SequenceNode;
  key: ScalarNode | undefined;
}

class TreeBuilder {
  readonly #source: SourceText;
  readonly #frames: Frame[] = [];
  #root: YamlNode | undefined;
  values = 0;
  /** End of the last token, the place of an absent value. */
  #cursor = 0;

  constructor(source: SourceText) {
    this.#source = source;
  }

  build(events: ReturnType<typeof parseEvents>): YamlNode | undefined {
    let inDocument: YamlNode | undefined;
    for (const event of events) {
      switch (event.type) {
        case EVENT_ID.DOCUMENT:
          inDocument = this.#root;
          break;
        case EVENT_ID.SCALAR:
          this.#refuseAnchor(event.anchorStart);
          this.#add(this.#scalar(event), inDocument);
          break;
        case EVENT_ID.ALIAS:
          this.#refuseAnchor(event.anchorStart);
          break;
        case EVENT_ID.MAPPING:
        case EVENT_ID.SEQUENCE: {
          this.#refuseAnchor(event.anchorStart);
          const shared = { start: event.start, flow: event.style === 2, tagStart: event.tagStart };
          const node: MappingNode | SequenceNode =
            event.type === EVENT_ID.MAPPING
              ? { kind: 'mapping', ...shared, entries: new Map() }
              : { kind: 'sequence', ...shared, items: [] };
          this.#cursor = event.start;
          this.#add(node, inDocument);
          this.#frames.push({ node, key: undefined });
          break;
        }
        case EVENT_ID.POP:
          this.#frames.pop();
          break;
      }
    }
    return this.#root;
  }

  #refuseAnchor(anchorStart: number): void {
    if (anchorStart === -1) return;
    failAt(
      this.#source,
      anchorStart - 1,
      'Anchor',
      'Anchors and aliases (&name, *name) are not supported in a Kptfile. Write the value out where it is needed.',
    );
  }

  #scalar(event: ScalarEvent): ScalarNode {
    const text = getScalarValue(this.#source.text, event);
    const tag = event.tagStart === -1 ? undefined : this.#source.text.slice(event.tagStart, event.tagEnd);
    const rest = { kind: 'scalar', tag, tagStart: event.tagStart, text } as const;
    if (event.valueStart === -1) {
      if (event.tagEnd > this.#cursor) this.#cursor = event.tagEnd;
      return { ...rest, start: this.#cursor, end: this.#cursor, form: 'absent' };
    }
    const form = FORMS[event.style];
    const quote = form === 'single' || form === 'double' ? 1 : 0;
    this.#cursor = event.valueEnd + quote;
    return { ...rest, start: event.valueStart - quote, end: event.valueEnd + quote, form };
  }

  #add(node: YamlNode, earlierDocument: YamlNode | undefined): void {
    this.values += 1;
    const frame = this.#frames.at(-1);
    if (frame === undefined) {
      this.#addRoot(node, earlierDocument);
    } else if (frame.node.kind === 'sequence') {
      frame.node.items.push(node);
    } else if (frame.key === undefined) {
      frame.key = this.#checkedKey(node, frame.node);
    } else {
      frame.node.entries.set(frame.key.text, { key: frame.key, value: node });
      frame.key = undefined;
    }
  }

  #addRoot(node: YamlNode, earlierDocument: YamlNode | undefined): void {
    const empty = node.kind === 'scalar' && node.form === 'absent';
    if (empty) return;
    if (earlierDocument !== undefined) {
      failAt(
        this.#source,
        node.start,
        'SeveralDocuments',
        'A second YAML document begins here. A Kptfile is one document: move the rest to files of their own.',
      );
    }
    this.#root = node;
  }

  #checkedKey(node: YamlNode, mapping: MappingNode): ScalarNode {
    if (node.kind !== 'scalar') {
      failAt(this.#source, node.start, 'Shape', 'A mapping or list is in the place of a field name.');
    }
    if (node.form === 'absent') failAt(this.#source, node.start, 'Shape', 'A field name is missing before the colon.');
    if (node.form === 'plain' && node.text === '<<') {
      failAt(
        this.#source,
        node.start,
        'Anchor',
        'Merge keys (<<) are not supported in a Kptfile. Write the fields out.',
      );
    }
    // As a property name it would change the prototype of the objects that programs build from it.
    if (node.text === '__proto__')
      failAt(this.#source, node.start, 'Shape', 'The field name __proto__ is not allowed.');
    const earlier = mapping.entries.get(node.text);
    if (earlier !== undefined) {
      const { line } = this.#source.position(earlier.key.start);
      failAt(
        this.#source,
        node.start,
        'DuplicateKey',
        `The field ${JSON.stringify(node.text)} occurs for the second time; the first is on line ${line}. Keep one of them.`,
      );
    }
    return node;
  }
}

const CONFLICT_MARKER = /^(?:<{7}|={7}|>{7}|\|{7})(?: .*)?$/m;

function syntaxError(source: SourceText, error: YAMLException): KptfileError {
  // What is not closed is found at the end of the text, which no editor shows as a line.
  const offset = Math.min(error.mark?.position ?? 0, Math.max(source.text.trimEnd().length - 1, 0));
  const place = source.position(offset);
  const conflict = CONFLICT_MARKER.exec(source.text.replaceAll('\r', '\n'));
  if (conflict !== null) {
    return {
      code: 'MergeConflict',
      message: `An unresolved Git merge conflict (${conflict[0].slice(0, 7)}). Decide which lines stay and remove the markers.`,
      ...source.position(conflict.index),
    };
  }
  const line = source.text.slice(source.lineStart(offset), source.lineEnd(offset));
  if (error.reason.startsWith('tab characters') || /^ *\t/.test(line)) {
    return { code: 'Tab', message: 'A tab is in the indentation. YAML indents with spaces only.', ...place };
  }
  if (error.reason.startsWith('nesting exceeded')) {
    return { code: 'TooDeep', message: `Nested deeper than ${MAX_DEPTH} levels. No Kptfile needs that.`, ...place };
  }
  if (error.reason.includes('non-printable') || error.reason.startsWith('null byte')) {
    return { code: 'Encoding', message: 'A control character that YAML does not allow. Remove it.', ...place };
  }
  return { code: 'Syntax', message: `Not valid YAML: ${error.reason}.`, ...place };
}
