import { Layout, Navbar } from 'nextra-theme-docs';
import { getPageMap } from 'nextra/page-map';

export const metadata = { title: 'Tea' };

export default async function RootLayout({ children }) {
  return (
    <html lang="en" dir="ltr" suppressHydrationWarning>
      <body>
        <Layout navbar={<Navbar logo={<b>Tea</b>} />} pageMap={await getPageMap()}>{children}</Layout>
      </body>
    </html>
  );
}
