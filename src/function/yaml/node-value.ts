import { Document, isMap, isScalar, isSeq, type Node, type Pair, type Scalar } from 'yaml';

/** Text that readers of YAML 1.1 or 1.2 do not read as a text without quotes. */
const NOT_A_TEXT =
  /^(?:~|null|true|false|yes|no|on|off|y|n|[-+]?[.0-9][-+.:_0-9a-f]*(?:e[-+]?\d+)?|[-+]?0[xo][0-9a-f_]+|[-+]?\.inf|\.nan|<<|=|)$/i;

/**
 * A node as plain data. A scalar without quotes is read as Kubernetes reads it: true and false, null, numbers; everything
 * else is a text. Keys are texts. A key `__proto__` is a plain property.
 */
export function plainValue(node: unknown): unknown {
  if (node === null || node === undefined) return null;
  if (isScalar(node)) return scalarValue(node);
  if (isSeq(node)) return node.items.map(plainValue);
  if (!isMap(node)) return null;
  const value: Record<string, unknown> = {};
  for (const { key, value: inner } of node.items) {
    const name = isScalar(key) ? String(key.value ?? 'null') : '';
    if (name === '__proto__') Object.defineProperty(value, name, { value: plainValue(inner), enumerable: true });
    else value[name] = plainValue(inner);
  }
  return value;
}

const STANDARD_TAG = /^tag:yaml\.org,2002:(?:int|float|bool|null)$/;

function scalarValue({ value, type, tag }: Scalar): unknown {
  if (typeof value !== 'string') return value;
  if (tag === undefined ? type !== 'PLAIN' : !STANDARD_TAG.test(tag)) return value;
  switch (value) {
    case 'true':
    case 'True':
    case 'TRUE':
      return true;
    case 'false':
    case 'False':
    case 'FALSE':
      return false;
    case '':
    case '~':
    case 'null':
    case 'Null':
    case 'NULL':
      return null;
    default:
  }
  return numberOf(value) ?? value;
}

/** A number as Go's YAML library reads it: with a leading zero it is an octal one, and underscores do not count. */
function numberOf(text: string): number | undefined {
  if (!/^[-+.]?[0-9]/.test(text)) return undefined;
  const [, sign, digits = ''] = /^([-+]?)(.*)$/s.exec(text.replaceAll('_', '')) ?? [];
  let size: number | undefined;
  if (/^0[0-7]+$/.test(digits)) size = Number(`0o${digits}`);
  else if (/^0(?:x[0-9a-f]+|o[0-7]+|b[01]+)$/i.test(digits)) size = Number(digits);
  else if (/^(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/.test(digits)) size = Number(digits);
  if (size === undefined || !Number.isFinite(size)) return undefined;
  return sign === '-' && size !== 0 ? -size : size;
}

/**
 * A node for plain data, of which every scalar reads as what it is: a text that could be taken for a number or a truth value is
 * quoted. Keys keep their order.
 */
export function createNode(value: unknown): Node {
  const node = new Document(null, { schema: 'failsafe' }).createNode(value, { aliasDuplicateObjects: false }) as Node;
  settle(node);
  return node;
}

/** Removes the format of JSON: blocks, and quotes only where they are needed. */
export function withoutJsonFormat(node: Node): void {
  if (isScalar(node)) {
    if (node.type === 'QUOTE_DOUBLE' && !NOT_A_TEXT.test(String(node.value))) delete node.type;
  } else if (isMap(node)) {
    node.flow = false;
    for (const { key, value } of node.items as Pair<Node, Node | null>[]) {
      withoutJsonFormat(key);
      if (value !== null) withoutJsonFormat(value);
    }
  } else if (isSeq(node)) {
    node.flow = false;
    for (const item of node.items as Node[]) withoutJsonFormat(item);
  }
}

/** Scalars contain their source texts, like parsed ones. */
function settle(node: unknown): void {
  if (isScalar(node)) {
    const { value } = node;
    if (typeof value === 'string') {
      if (NOT_A_TEXT.test(value)) node.type = 'QUOTE_DOUBLE';
    } else if (value !== null) {
      node.value = String(value);
      node.type = 'PLAIN';
    }
  } else if (isMap(node)) {
    for (const { key, value } of node.items) {
      settle(key);
      settle(value);
    }
  } else if (isSeq(node)) for (const item of node.items) settle(item);
}
