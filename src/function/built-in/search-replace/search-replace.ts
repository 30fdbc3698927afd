// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how groups and setters are written.
import { isScalar, isSeq, type Node, type Scalar } from 'yaml';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { KrmFunction, ResourceList } from '../../model/function.ts';
import { resultFor, withoutReference } from '../../model/function-result.ts';
import type { Resource } from '../../resource/resource.ts';
import { plainValue } from '../../yaml/node-value.ts';
import { CONFIG_MAP, configOf, textsAt } from '../support/fields/function-config.ts';
import { fieldText, type Trail, walkFields } from '../support/fields/walk-fields.ts';
import { lineComment, putLineComment } from '../support/text/line-comment.ts';
import { scalarText, writeScalar } from '../support/text/scalar-text.ts';
import { isListField } from '../support/text/setter-pattern.ts';
import { shownValue } from '../support/text/shown-value.ts';
import { Search } from './search.ts';

export const searchReplace: KrmFunction = {
  name: 'search-replace',
  readsStatus: true,
  doc: {
    summary: 'Finds fields by value or path, and writes values or comments there.',
    description: [
      'The configuration is a ConfigMap with `data`. `by-value` finds fields that hold exactly this text; `by-value-regex` fields that match this regular expression (RE2) anywhere in the text; `by-path` fields at a path. A field must match all that are set, and one of them must be set. `by-file-path` excludes the files whose path does not match a glob, in which `**` matches any number of folders.',
      'A path has dots between its keys and places of lists in brackets: `spec.containers[0].image`. `*` matches any key, `[*]` any place, and `**` any number of keys.',
      '`put-value` is written in place of the whole value, and `put-comment` behind it. In both, `${1}` is the text of the first group of `by-value-regex`. A value without quotes is read as YAML, so `put-value: "4"` writes the number 4 over the number 3. Without either, the fields are only reported.',
      'With `put-value` and a `by-path` without `*` and `[`, and no other matcher, the field is set in every resource, and created where it is missing. `put-comment` with a `by-path` of a list puts the comment behind its key.',
    ].join('\n\n'),
    examples: [
      'pipeline:\n  mutators:\n    - image: ghcr.io/kptdev/krm-functions-catalog/search-replace:v0.2\n      configMap:\n        by-path: spec.**.containerPort\n        by-value: "80"\n        put-value: "8080"\n',
      'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: move\ndata:\n  by-value-regex: "^old-(.*)$"\n  put-value: new-${1}\n',
    ],
    differences: [
      'Messages do not show values that are in a Secret or look like one.',
      'One of `by-value`, `by-value-regex` and `by-path` must be set, as in the images up to v0.2.1.',
      'With `by-value` or `by-value-regex`, a list as a whole is not found.',
      '`put-comment` is written where `put-value` sets a field by its path, too.',
      'The annotations for the place of a resource do not count as fields: the published function finds their values, too.',
    ],
  },
  run(list) {
    const config = configOf(list, 'search-replace', [CONFIG_MAP]);
    const search = new Search(config, textsAt(config, ['data']));
    const run = new SearchRun(list, search);
    const before = list.results.length;
    for (const resource of list.items) if (search.matchesFile(resource.file)) run.on(resource);
    if (list.results.length === before) list.results.push({ severity: 'info', message: 'no matches' });
  },
};

class SearchRun {
  readonly #list: ResourceList;
  readonly #search: Search;

  constructor(list: ResourceList, search: Search) {
    this.#list = list;
    this.#search = search;
  }

  on(resource: Resource): void {
    const search = this.#search;
    if (search.place !== undefined) {
      this.#setPlace(resource, search.place);
      return;
    }
    walkFields(resource.root, (node, trail) => {
      if (isScalar(node)) {
        if (search.matchesScalar(scalarText(node), () => fieldText(trail))) this.#onScalar(resource, node, trail);
      } else if (search.putComment !== undefined && isSeq(node) && node.items.length > 0 && isListField(node, trail)) {
        if (!search.matchesList(() => fieldText(trail))) return;
        node.flow = false;
        putLineComment(node, oneLine(search.putComment));
        this.#report(resource, trail, node);
      }
    });
  }

  #onScalar(resource: Resource, node: Scalar, trail: Trail): void {
    const { putValue, putComment } = this.#search;
    const before = scalarText(node);
    const value = putValue === undefined ? undefined : this.#search.resolve(putValue, before);
    const comment = putComment === undefined ? undefined : this.#search.resolve(putComment, before);
    if ((putValue !== undefined && value === undefined) || (putComment !== undefined && comment === undefined)) {
      const message = 'unable to resolve capture groups: by-value-regex has fewer groups than the value refers to';
      this.#list.results.push(resultFor('error', message, resource, fieldText(trail)));
      return;
    }
    if (value !== undefined && value !== before) writeScalar(node, value);
    if (comment !== undefined) putLineComment(node, oneLine(comment));
    this.#report(resource, trail, node);
  }

  #setPlace(resource: Resource, place: readonly string[]): void {
    const { putValue = '', putComment } = this.#search;
    let node = resource.node(place);
    if (!isScalar(node)) {
      try {
        resource.set(place, putValue);
      } catch (error) {
        if (!isSluiceError(error, 'InvalidInput')) throw error;
        this.#list.results.push(resultFor('error', error.message, resource, place.join('.')));
        return;
      }
      node = resource.node(place) as Scalar;
      delete (node as Scalar).type;
    }
    const scalar = node as Scalar;
    if (scalarText(scalar) !== putValue || scalar.type === undefined) writeScalar(scalar, putValue);
    if (putComment !== undefined) putLineComment(scalar, oneLine(putComment));
    this.#report(resource, [...place], scalar);
  }

  #report(resource: Resource, trail: Trail, node: Node): void {
    const { putValue, putComment } = this.#search;
    const value = isScalar(node) ? writtenText(node) : JSON.stringify(plainValue(node));
    const text = putComment === undefined ? value : `${value} #${lineComment(node) ?? ''}`;
    const verb = putValue === undefined && putComment === undefined ? 'Matched field value' : 'Mutated field value to';
    const field = fieldText(trail);
    this.#list.results.push(
      withoutReference(resultFor('info', `${verb} ${shownValue(text, [field], resource)}`, resource, field)),
    );
  }
}

/** As in the file, with its quotes, like the published function. */
function writtenText(node: Scalar): string {
  const text = scalarText(node);
  if (node.type === 'QUOTE_DOUBLE') return `"${text}"`;
  return node.type === 'QUOTE_SINGLE' ? `'${text}'` : text;
}

function oneLine(comment: string): string {
  return comment.replaceAll(/\s*\n\s*/g, ' ').trim();
}
