// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how setters are written.
import { isScalar, isSeq, type Node, type Scalar, type YAMLSeq } from 'yaml';
import type { KrmFunction, ResourceList } from '../model/function.ts';
import { resultFor } from '../model/function-result.ts';
import type { Resource } from '../resource/resource.ts';
import { CONFIG_MAP, configOf, invalidConfig, textsAt } from './support/fields/function-config.ts';
import { fieldText, type Trail, walkFields } from './support/fields/walk-fields.ts';
import { yamlList } from './support/fields/yaml-list.ts';
import { putLineComment } from './support/text/line-comment.ts';
import { scalarText } from './support/text/scalar-text.ts';
import { isListField } from './support/text/setter-pattern.ts';
import { shownValue } from './support/text/shown-value.ts';

interface Setter<Value> {
  readonly name: string;
  readonly value: Value;
}

export const createSetters: KrmFunction = {
  name: 'create-setters',
  doc: {
    summary: 'Binds the fields that have the values of setters to these setters, by comments.',
    description: [
      'The configuration is a ConfigMap with a value for each setter in `data`. Every field that holds such a value gets a comment in its line with its setters: with `image: nginx` and `tag: "1.25"`, `image: nginx:1.25` becomes `image: nginx:1.25 # kpt-set: ${image}:${tag}`. Longer values go before shorter ones. Texts of several lines are skipped.',
      'A setter whose value is a YAML list in a text is for lists with the same items in any order; they get their comment behind the key.',
      'apply-setters writes other values into the fields that are bound to setters.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: ghcr.io/kptdev/krm-functions-catalog/create-setters:v0.1\n      configMap:\n        image: nginx\n        replicas: "3"\n',
    ],
    differences: [
      'Kptfiles and the configuration itself do not change.',
      'A setter without a value is skipped.',
      'Lists that contain mappings or lists are skipped.',
    ],
  },
  run(list) {
    const config = configOf(list, 'create-setters', [CONFIG_MAP]);
    const data = textsAt(config, ['data']);
    if (data.size === 0) throw invalidConfig(config, 'data must name setters and their values');
    const before = list.results.length;
    const setters = new SetterComments(data);
    for (const resource of list.items) {
      if (resource.kind === 'Kptfile' || isSame(resource, config)) continue;
      walkFields(resource.root, (node, trail) => setters.comment(node, trail, resource, list));
    }
    if (list.results.length === before)
      list.results.push(resultFor('error', 'no matches for the input list of setters', config, 'data'));
  },
};

class SetterComments {
  /** Longest values first. */
  readonly #texts: readonly Setter<string>[];
  readonly #lists: readonly Setter<readonly string[]>[];

  constructor(data: ReadonlyMap<string, string>) {
    const texts: Setter<string>[] = [];
    const lists: Setter<readonly string[]>[] = [];
    for (const [name, value] of data) {
      const items = yamlList(value)?.items;
      if (items !== undefined) lists.push({ name, value: sortedTexts(items) ?? [] });
      else if (value !== '') texts.push({ name, value });
    }
    this.#texts = texts.sort((a, b) => b.value.length - a.value.length);
    this.#lists = lists;
  }

  comment(node: Node, trail: Trail, resource: Resource, { results }: ResourceList): void {
    const comment = isScalar(node)
      ? this.#scalarComment(node)
      : isSeq(node) && isListField(node, trail)
        ? this.#listComment(node as YAMLSeq<Node>)
        : undefined;
    if (comment === undefined) return;
    putLineComment(node, comment);
    const field = fieldText(trail);
    results.push(resultFor('info', `set comment to ${shownValue(comment, [field], resource)}`, resource, field));
  }

  #scalarComment(node: Scalar): string | undefined {
    const text = scalarText(node);
    return text.includes('\n') || !this.#isIn(text) ? undefined : `kpt-set: ${this.#patternOf(text)}`;
  }

  #listComment(node: YAMLSeq<Node>): string | undefined {
    const items = sortedTexts(node.items);
    if (items === undefined) return undefined;
    const setter = this.#lists.find(
      ({ value }) => value.length === items.length && value.every((item, at) => item === items[at]),
    );
    // Items on one line cannot have separate comments.
    if (items.length > 0 && (setter !== undefined || items.some((text) => this.#isIn(text)))) node.flow = false;
    return setter === undefined ? undefined : `kpt-set: \${${setter.name}}`;
  }

  #isIn(text: string): boolean {
    return this.#texts.some(({ value }) => text.includes(value));
  }

  #patternOf(text: string): string {
    let pattern = '';
    for (let at = 0; at < text.length; ) {
      const setter = this.#texts.find(({ value }) => text.startsWith(value, at));
      pattern += setter === undefined ? text[at] : `\${${setter.name}}`;
      at += setter?.value.length ?? 1;
    }
    return pattern;
  }
}

/** The texts of a list of scalars. */
function sortedTexts(items: readonly Node[]): string[] | undefined {
  return items.every((item) => isScalar(item)) ? items.map((item) => scalarText(item as Scalar)).sort() : undefined;
}

function isSame(a: Resource, b: Resource): boolean {
  return a.kind === b.kind && a.name === b.name && a.file === b.file && a.index === b.index;
}
