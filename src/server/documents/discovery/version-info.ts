/**
 * The Kubernetes version that Sluice reports. kubectl warns of servers that differ by more than one minor version, so this is the middle of
 * those in use: 1.32 to 1.34 do not warn.
 */
const MAJOR = '1';
const MINOR = '33';

/** `version.Info` of Kubernetes. */
export interface VersionInfo {
  readonly major: string;
  readonly minor: string;
  readonly gitVersion: string;
  readonly gitCommit: string;
  readonly gitTreeState: string;
  readonly buildDate: string;
  readonly goVersion: string;
  readonly compiler: string;
  readonly platform: string;
}

/**
 * `/version`. `version` is that of Sluice, `platform` the machine's, as in `linux/amd64`. Fields that only a program
 * built with Go has are empty.
 */
export function versionInfo(version: string, platform: string): VersionInfo {
  return {
    major: MAJOR,
    minor: MINOR,
    // Behind a plus sign every run of other characters than these ends what clients can read.
    gitVersion: `v${MAJOR}.${MINOR}.0+sluice.${version.replaceAll(/[^0-9A-Za-z.-]/g, '-')}`,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '',
    goVersion: '',
    compiler: '',
    platform,
  };
}
