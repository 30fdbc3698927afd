// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how setters are written.
import { isScalar, isSeq, type Node, type Scalar, type YAMLSeq } from 'yaml';
import { samePart } from '../../package/merge/yaml-document.ts';
import type { KrmFunction, ResourceList } from '../model/function.ts';
import { resultFor, withoutReference } from '../model/function-result.ts';
import type { Resource } from '../resource/resource.ts';
import { textsAt } from './support/fields/function-config.ts';
import { fieldText, type Trail, walkFields } from './support/fields/walk-fields.ts';
import { yamlList } from './support/fields/yaml-list.ts';
import { lineComment, putLineComment } from './support/text/line-comment.ts';
import { scalarText, writeScalar } from './support/text/scalar-text.ts';
import {
  deriveSetters,
  expandPattern,
  isListField,
  type SetterPattern,
  setterPatternOf,
  soleSetter,
} from './support/text/setter-pattern.ts';
import { shownValue } from './support/text/shown-value.ts';

/** Characters of a pattern in a message. */
const MAX_SHOWN_CHARACTERS = 200;

export const applySetters: KrmFunction = {
  name: 'apply-setters',
  doc: {
    summary: 'Writes the values of setters into the fields that comments bind to them.',
    description: [
      'A comment in its line binds a field to setters: `image: nginx:1.25 # kpt-set: ${image}:${tag}`. The configuration is a ConfigMap with a value for each setter in `data`. A setter without a value there keeps its part of the field; a field without any setter of the configuration stays as it is.',
      'A comment behind its key binds a whole list, `names: # kpt-set: ${names}`, to one setter, whose value is a YAML list in a text. An empty value makes the list empty.',
      'A value in quotes stays in quotes. A value without quotes is read as YAML, so a setter `replicas` with the value "3" sets a number.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: ghcr.io/kptdev/krm-functions-catalog/apply-setters:v0.2\n      configMap:\n        image: nginx\n        replicas: "3"\n',
      'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: setters\ndata:\n  names: |\n    - dev\n    - prod\n',
    ],
    differences: [
      'A setter without a field is reported as an info.',
      'All fields that cannot be set are reported, not only the first one.',
      'Messages do not show values that are in a Secret or look like one.',
      'A value that holds `${…}` is written as it is.',
      'Items keep their comments if the values of a list stay the same.',
      'Comments stay where they are, and texts of several lines keep their form.',
    ],
    compared: 'v0.2.0, by `npm run test:go`',
  },
  run: (list) => new SettersRun(list).run(),
};

class SettersRun {
  readonly #list: ResourceList;
  readonly #setters: ReadonlyMap<string, string>;
  readonly #used = new Set<string>();

  constructor(list: ResourceList) {
    this.#list = list;
    this.#setters = list.config === undefined ? new Map() : textsAt(list.config, ['data']);
  }

  run(): void {
    const { items, results, config } = this.#list;
    const before = results.length;
    if (this.#setters.size > 0) {
      for (const resource of items)
        walkFields(resource.root, (node, trail) => {
          if (!isScalar(node) && !isListField(node, trail)) return;
          const pattern = setterPatternOf(node);
          if (pattern?.names.some((name) => this.#setters.has(name)) !== true) return;
          for (const name of pattern.names) this.#used.add(name);
          if (isScalar(node)) this.#setScalar(resource, node, pattern, trail);
          else if (isSeq(node)) this.#setList(resource, node as YAMLSeq<Node>, pattern, trail);
        });
    }
    if (results.length === before) results.push({ severity: 'warning', message: 'no matches for input setter(s)' });
    if (config === undefined) return;
    for (const name of this.#setters.keys())
      if (!this.#used.has(name))
        results.push(resultFor('info', `no field uses the setter ${JSON.stringify(name)}`, config, `data.${name}`));
  }

  #setScalar(resource: Resource, node: Scalar, pattern: SetterPattern, trail: Trail): void {
    const needsOthers = pattern.names.some((name) => !this.#setters.has(name));
    const derived = needsOthers ? deriveSetters(pattern, scalarText(node)) : undefined;
    const { text, missing } = expandPattern(pattern, (name) => this.#setters.get(name) ?? derived?.get(name));
    if (missing.length > 0) {
      const names = missing
        .map((name) => `\${${name}}`)
        .join(' ')
        .slice(0, MAX_SHOWN_CHARACTERS);
      this.#fail(
        resource,
        trail,
        `values for setters [${names}] must be provided: the field does not have the form ${pattern.text.slice(0, MAX_SHOWN_CHARACTERS)}`,
      );
      return;
    }
    if (text !== scalarText(node)) writeScalar(node, text);
    if (text === '') {
      node.value = '';
      node.type = 'QUOTE_DOUBLE';
    }
    this.#report(resource, trail, text, pattern);
  }

  #setList(resource: Resource, node: YAMLSeq<Node>, pattern: SetterPattern, trail: Trail): void {
    const name = soleSetter(pattern);
    if (name === undefined) {
      this.#fail(
        resource,
        trail,
        `invalid setter pattern for array node: ${JSON.stringify(pattern.text.slice(0, MAX_SHOWN_CHARACTERS))}: a list takes one setter`,
      );
      return;
    }
    const value = this.#setters.get(name) ?? '';
    const made = value.trim() === '' ? [] : yamlList(value)?.items;
    if (made === undefined) {
      this.#fail(
        resource,
        trail,
        `input to array setter must be an array of values, but found ${shownValue(value, [name], resource)}`,
      );
      return;
    }
    replaceItems(node, made);
    this.#report(resource, trail, value, pattern);
  }

  #report(resource: Resource, trail: Trail, value: string, { names }: SetterPattern): void {
    const field = fieldText(trail);
    const message = `set field value to ${shownValue(value, [field, ...names], resource)}`;
    this.#list.results.push(withoutReference(resultFor('info', message, resource, field)));
  }

  #fail(resource: Resource, trail: Trail, message: string): void {
    this.#list.results.push(resultFor('error', message, resource, fieldText(trail)));
  }
}

/**
 * Replaces the items of a list. Its comment is placed where kpt expects it: after the key, or after the `[]` of an empty
 * list.
 */
function replaceItems(node: YAMLSeq<Node>, items: Node[]): void {
  const same = items.length === node.items.length && items.every((item, at) => samePart(item, node.items[at]));
  if (same) return;
  const comment = lineComment(node)?.trim() ?? '';
  const ownLines = (node.flow === true ? '' : (node.commentBefore ?? '')).split('\n').slice(1).join('\n');
  delete node.comment;
  node.items = items;
  node.flow = items.length === 0;
  node.commentBefore = ownLines;
  putLineComment(node, comment);
}
