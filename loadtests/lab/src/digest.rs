//! SHA-256: of files, to tell whether they are what they were; of texts, to tell them apart.

use std::io::{self, Read};
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};

/// One digest over the contents of all, in order; hexadecimal.
///
/// # Errors
/// A file cannot be read; the message names it.
pub(crate) fn of_files<P: AsRef<Path>>(files: impl IntoIterator<Item = P>) -> io::Result<String> {
    let mut context = Context::new(&SHA256);
    for path in files {
        add(&mut context, path.as_ref())
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.as_ref().display())))?;
    }
    let digest = context.finish();
    Ok(digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The first 64 bits of a text's digest; hexadecimal. Enough to tell the values of one load apart.
pub(crate) fn short(text: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&SHA256, text.as_bytes());
    digest.as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn add(context: &mut Context, path: &Path) -> io::Result<()> {
    let mut file = std::fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            count => context.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_digest_is_that_of_the_contents() {
        let path = std::env::temp_dir().join(format!("rowlock-digest-{}", std::process::id()));
        std::fs::write(&path, "abc").unwrap();
        let once = super::of_files([&path]).unwrap();
        let twice = super::of_files([&path, &path]).unwrap();
        std::fs::remove_file(&path).unwrap();
        // As in FIPS 180-2.
        assert_eq!(once, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_ne!(once, twice);
        let gone = super::of_files([&path]).unwrap_err().to_string();
        assert!(gone.contains("rowlock-digest"), "{gone}");
    }
}
