import ipaddr from 'ipaddr.js';

const DATE_TIME = /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$/;
const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
const HOST_LABEL = /^[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?$/;
/** Longer texts are taken as they are: formats are about short ones, save for bytes. */
const MAX_LENGTH = 4096;

const isDate = (text: string) => /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text));

const FORMATS: Readonly<Record<string, (text: string) => boolean>> = {
  'date-time': (text) => DATE_TIME.test(text) && !Number.isNaN(Date.parse(text.replace(' ', 'T'))),
  date: isDate,
  byte: (text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text),
  uuid: (text) => UUID.test(text),
  ipv4: (text) => ipaddr.IPv4.isValidFourPartDecimal(text),
  ipv6: (text) => ipaddr.IPv6.isValid(text),
  cidr: (text) => ipaddr.isValidCIDR(text),
  uri: (text) => URL.canParse(text) || text.startsWith('/'),
  hostname: (text) => text.length <= 253 && text.split('.').every((label) => HOST_LABEL.test(label)),
  duration: (text) => /^-?(\d+(\.\d+)?(ns|us|µs|μs|ms|s|m|h|d|w))+$|^0$/.test(text),
};

/** True if a text has the format. Unknown formats constrain nothing, as in a kube-apiserver. */
export function hasFormat(format: string, text: string): boolean {
  if (!Object.hasOwn(FORMATS, format) || (text.length > MAX_LENGTH && format !== 'byte')) return true;
  return FORMATS[format]?.(text) ?? true;
}
