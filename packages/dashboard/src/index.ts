/** The page that the control plane serves to an operator. */
export { DASHBOARD_CSP, DASHBOARD_HTML } from "./page.ts";
